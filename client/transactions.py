"""What a transactional producer asks of coordinators; see `Producer.transaction`.

It speaks the protocol in which every end raises the producer's epoch (KIP-890). Partitions are put
into the transaction by their leaders, with the first batch that comes, so there is nothing to be
asked before a record is sent; and what is late of an ended transaction is refused by its epoch.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from tidemark.client.accumulator import ProducerIdentity
from tidemark.client.codes import check, left_out, raise_first
from tidemark.client.connection import Connection
from tidemark.client.coordinator import (
    TRANSACTION,
    GroupMembership,
    as_commit,
    on_coordinator,
)
from tidemark.client.descriptions import BrokerDescription, CommittedOffset
from tidemark.client.network import Network
from tidemark.client.transaction_descriptions import PreparedTransaction
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tidemark.protocol.types import ProducerId, TopicPartition

T = TypeVar("T")

FEATURE: Final = "transaction.version"
LEVEL: Final = 2


class TransactionCalls:
    """Those of one transactional id; `identity` is what its records are sent under."""

    def __init__(self, network: Network, transactional_id: str, timeout_ms: int) -> None:
        self._network = network
        self._timeout_ms = timeout_ms
        self.transactional_id = transactional_id
        self.identity: ProducerIdentity | None = None

    async def take_over(self) -> ProducerIdentity:
        """Get an epoch; whoever had the id before is fenced, and what it left open is aborted.

        Later on, the same producer goes on after an error. Raises `RequestError`, PRODUCER_FENCED
        if another one has taken over.
        """
        before = self.identity

        async def ask(connection: Connection) -> ProducerIdentity:
            if connection.features.get(FEATURE, 0) < LEVEL:
                raise RequestError(
                    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                    f"this client's transactions need brokers with {FEATURE} {LEVEL}, as Tidemark "
                    "and Kafka 4 have it",
                )
            request = InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=-1 if before is None else before.producer_id,
                producer_epoch=-1 if before is None else before.epoch,
            )
            answer = await connection.request(request, InitProducerIdResponse)
            check(answer.error_code, f"transactional id {self.transactional_id}")
            return ProducerIdentity(answer.producer_id, answer.producer_epoch, True)

        self.identity = await self._ask(ask)
        return self.identity

    def prepared(self) -> PreparedTransaction:
        """What somebody else needs to end what is open."""
        assert self.identity is not None
        return PreparedTransaction(
            transactional_id=self.transactional_id,
            producer_id=ProducerId(self.identity.producer_id),
            epoch=self.identity.epoch,
        )

    async def end(self, *, commit: bool) -> ProducerIdentity:
        """Commit or abort. An answer that is lost is asked for again, and is the same."""
        identity = self.identity
        assert identity is not None

        async def ask(connection: Connection) -> ProducerIdentity:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                committed=commit,
            )
            answer = await connection.request(request, EndTxnResponse)
            check(answer.error_code, f"transactional id {self.transactional_id}")
            return ProducerIdentity(answer.producer_id, answer.producer_epoch, True)

        self.identity = await self._ask(ask)
        return self.identity

    async def commit_offsets(
        self,
        group: GroupMembership,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
    ) -> None:
        """Have these offsets count if the transaction is committed.

        Raises `RequestError` for the first that is refused.
        """
        identity = self.identity
        assert identity is not None
        commits = {at: as_commit(offset) for at, offset in offsets.items()}
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for at, commit in commits.items():
            topics.setdefault(at.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=at.partition,
                    committed_offset=commit.offset,
                    committed_leader_epoch=commit.leader_epoch,
                    committed_metadata=commit.metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id=group.membership.generation,
            member_id=group.membership.member_id,
            group_instance_id=group.membership.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            answer = await connection.request(request, TxnOffsetCommitResponse)
            codes = {
                TopicPartition(topic.name, each.partition_index): each.error_code
                for topic in answer.topics
                for each in topic.partitions
            }
            for at, code in codes.items():
                check(code, f"{at} of group {group.group}")
            raise_first([left_out(at) for at in commits if at not in codes])

        await on_coordinator(
            self._network,
            group.group,
            ask,
            final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,),
        )

    async def _ask(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        async def ask_it(_: BrokerDescription, connection: Connection) -> T:
            return await ask(connection)

        return await on_coordinator(self._network, self.transactional_id, ask_it, kind=TRANSACTION)
