"""Transactions: those that coordinators know, and those that hang in partitions."""

from collections.abc import Collection, Iterable, Mapping

from tidemark.client.accumulator import ProducerIdentity
from tidemark.client.admin.producers import ProducerAdmin
from tidemark.client.codes import check, only
from tidemark.client.connection import Connection
from tidemark.client.coordinator import TRANSACTION, on_coordinator
from tidemark.client.descriptions import BrokerDescription
from tidemark.client.lookups import ask_leaders
from tidemark.client.network import address_of
from tidemark.client.producer_descriptions import ProducerDescription
from tidemark.client.retries import may_pass
from tidemark.client.transaction_descriptions import (
    HangingTransaction,
    PreparedTransaction,
    TransactionDescription,
    TransactionListing,
)
from tidemark.client.transactions import TransactionCalls
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.types import NodeId, Offset, ProducerId, TopicPartition

_FENCE_TIMEOUT_MS = 60_000
"""Of a session that nobody goes on with; it has to be within any broker's limit."""


class TransactionAdmin(ProducerAdmin):
    """The calls about transactions."""

    async def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[ProducerId] = (),
        open_for_ms: int = -1,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers, by name; only those that fit what is given."""
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=open_for_ms,
        )

        async def attempt() -> list[TransactionListing]:
            await self._network.refresh()
            found: list[TransactionListing] = []
            for broker in self._network.view.brokers.values():
                connection = await self._network.pool.connection(address_of(broker))
                answer = await connection.request(request, ListTransactionsResponse)
                check(answer.error_code, f"the transactions of broker {broker.node_id}")
                found += [
                    TransactionListing(
                        transactional_id=each.transactional_id,
                        producer_id=ProducerId(each.producer_id),
                        state=each.transaction_state,
                        coordinator=broker.node_id,
                    )
                    for each in answer.transaction_states
                ]
            return sorted(found, key=lambda listing: listing.transactional_id)

        return await self._network.retrying(attempt)

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """One id. Raises TRANSACTIONAL_ID_NOT_FOUND if its coordinator does not know it."""

        async def ask(
            coordinator: BrokerDescription, connection: Connection
        ) -> TransactionDescription:
            request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            answer = await connection.request(request, DescribeTransactionsResponse)
            state = only(answer.transaction_states, f"transactional id {transactional_id}")
            check(state.error_code, f"transactional id {transactional_id}")
            return _description(state, coordinator)

        return await on_coordinator(self._network, transactional_id, ask, kind=TRANSACTION)

    async def describe_transactions(
        self, listed: Iterable[TransactionListing]
    ) -> dict[str, TransactionDescription]:
        """What their coordinators say of those that were listed, by transactional id: a request to
        each broker. Those whose coordinator has changed or gone since are left out."""
        by_coordinator: dict[int, list[str]] = {}
        for each in listed:
            by_coordinator.setdefault(each.coordinator, []).append(each.transactional_id)
        found: dict[str, TransactionDescription] = {}
        for node, transactional_ids in by_coordinator.items():
            coordinator = self._network.view.brokers.get(NodeId(node))
            if coordinator is None:
                continue
            request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
            try:
                connection = await self._network.pool.connection(address_of(coordinator))
                answer = await connection.request(request, DescribeTransactionsResponse)
            except (OSError, RequestError) as error:
                if not may_pass(error):
                    raise
                continue
            for state in answer.transaction_states:
                if state.error_code == ErrorCode.NONE:
                    found[state.transactional_id] = _description(state, coordinator)
        return found

    async def end_transaction(self, opened: PreparedTransaction, *, commit: bool) -> None:
        """Commit or abort what a producer has left open (`Producer.prepare_transaction`).

        Doing it again, to the same end, is nothing. Raises `RequestError`: INVALID_TXN_STATE where
        it is committed, PRODUCER_FENCED and the like where it is aborted or somebody else has the
        id now.
        """
        calls = TransactionCalls(self._network, opened.transactional_id, _FENCE_TIMEOUT_MS)
        calls.identity = ProducerIdentity(opened.producer_id, opened.epoch, True)
        await calls.end(commit=commit)

    async def fence_producer(self, transactional_id: str) -> None:
        """Have whoever uses the id use it no more; what it has open is aborted."""

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=_FENCE_TIMEOUT_MS
            )
            answer = await connection.request(request, InitProducerIdResponse)
            check(answer.error_code, f"transactional id {transactional_id}")

        # While it is being aborted, the answer is that it will pass.
        await on_coordinator(self._network, transactional_id, ask, kind=TRANSACTION)

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[HangingTransaction]:
        """Those that are open in a partition, and that no coordinator has among its own.

        Readers of what is committed wait for each of them, for ever. The partitions are looked at
        twice, before coordinators are asked and after it: a transaction that ended or began
        meanwhile does not hang.
        """
        before = _opened(await self.describe_producers(list(partitions)))
        if not before:
            return []
        coordinated = await self._coordinated({each.producer_id for each in before.values()})
        suspects = {
            key: each
            for key, each in before.items()
            if (each.producer_id, each.partition) not in coordinated
        }
        if not suspects:
            return []
        after = _opened(
            await self.describe_producers({each.partition for each in suspects.values()})
        )
        return [each for key, each in sorted(suspects.items()) if key in after]

    async def abort_hanging_transaction(self, hanging: HangingTransaction) -> None:
        """Have the partition's leader write the marker that no coordinator will.

        Raises `RequestError`, INVALID_PRODUCER_EPOCH if the producer has gone on since.
        """
        place = hanging.partition
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
            coordinator_epoch=hanging.coordinator_epoch,
        )

        async def ask(
            connection: Connection, led: Iterable[TopicPartition]
        ) -> Mapping[TopicPartition, RequestError | None]:
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = await connection.request(request, WriteTxnMarkersResponse)
            topic = only(only(answer.markers, place).topics, place)
            code = only(topic.partitions, place).error_code
            refusal = RequestError(ErrorCode(code), str(place)) if code else None
            return dict.fromkeys(led, refusal)

        await ask_leaders(self._network, [place], ask)

    async def _coordinated(
        self, producer_ids: Collection[ProducerId]
    ) -> set[tuple[ProducerId, TopicPartition]]:
        """The partitions of their open transactions, as coordinators know them."""
        found = set()
        for listed in await self.list_transactions(producer_ids=producer_ids):
            try:
                described = await self.describe_transaction(listed.transactional_id)
            except RequestError as error:
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            found |= {(described.producer_id, each) for each in described.partitions}
        return found


_Opened = dict[tuple[TopicPartition, ProducerId, Offset], HangingTransaction]


def _opened(described: Mapping[TopicPartition, Iterable[ProducerDescription]]) -> _Opened:
    """The transactions that partitions have open; they may be quite in order."""
    return {
        (place, each.producer_id, each.transaction_start): HangingTransaction(
            partition=place,
            producer_id=each.producer_id,
            epoch=each.epoch,
            coordinator_epoch=each.coordinator_epoch or 0,
            start=each.transaction_start,
            last_timestamp_ms=each.last_timestamp_ms,
        )
        for place, producers in described.items()
        for each in producers
        if each.transaction_start is not None
    }


def _description(state: TransactionState, coordinator: BrokerDescription) -> TransactionDescription:
    started_ms = state.transaction_start_time_ms
    return TransactionDescription(
        transactional_id=state.transactional_id,
        coordinator=coordinator,
        state=state.transaction_state,
        producer_id=ProducerId(state.producer_id),
        epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        started_ms=started_ms if started_ms >= 0 else None,
        partitions=frozenset(
            TopicPartition(topic.topic, each) for topic in state.topics for each in topic.partitions
        ),
    )
