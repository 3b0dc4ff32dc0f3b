"""Transactions at one partition: whose batches may be appended, and how they end."""

from __future__ import annotations

from typing import Final

from tidemark.broker.replicas.held import HeldTask
from tidemark.broker.replicas.replica_state import ReplicaState
from tidemark.partitions.state_machines.verifications import Verifications
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset, ProducerId

_COMES_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""What a producer cannot be told as it is: older ones take it for the end of everything. It is told
NOT_ENOUGH_REPLICAS, which all of them retry, and without asking for metadata first."""
_ABORTABLE_SINCE: Final = 11
"""The Produce version whose clients know TRANSACTION_ABORTABLE."""


class TransactionalReplica(ReplicaState):
    """The part of `Replica` that transactional producers and their coordinators write through."""

    __slots__ = ()

    @property
    def verifications(self) -> Verifications:
        """What was asked about producers, for as long as this broker leads in this epoch."""
        if self._verifications is None:
            self._verifications = Verifications()
        return self._verifications

    def wants_verification(self, producer_id: ProducerId, epoch: int) -> bool:
        """Whether the coordinator has to say that the producer's transaction is open here.

        Not if the log says so; nor of a producer that is fenced, which the log says as well.
        """
        table = self.member.producers
        known = table.newest_epoch(producer_id)
        if known is not None and epoch < known:
            return False
        return known != epoch or producer_id not in table.transactions.opened

    def check_verified(self, header: BatchHeader, api_version: int) -> None:
        """Raises `RequestError` unless the log or the coordinator says that the transaction of a
        client's batch is open."""
        producer_id, epoch = ProducerId(header.producer_id), header.producer_epoch
        if not self.wants_verification(producer_id, epoch):
            return
        question = self.verifications.find(producer_id, epoch)
        if question is None:
            raise RequestError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has no transaction open in {self.name}, and the request "
                "says no transactional id to ask about",
            )
        if not question.is_settled:
            raise RequestError(
                ErrorCode.NOT_ENOUGH_REPLICAS, "the transaction's coordinator has not answered yet"
            )
        if question.error is not None:
            self.verifications.pass_on(question)
            raise _as_told(question.error, api_version)

    def append_marker(
        self, producer_id: ProducerId, epoch: int, marker: Marker, *, raises_epoch: bool
    ) -> Offset:
        """Write the end of a transaction, if it is not there; it is for good once all below the
        offset that is returned is committed. Raises `RequestError`."""
        member = self.member
        if not member.is_accepting:
            raise self.why_not_serving()
        try:
            ended = member.append_marker(producer_id, epoch, marker, raises_epoch=raises_epoch)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("append", error) from error
        self.verifications.forget(producer_id)
        self._services.driver.touch()
        return ended.offset

    async def wait_flowing(self) -> None:
        """As long as writes are held, as held requests wait."""
        if self.is_holding:
            waiter = HeldTask()
            self.line.join(waiter, 0)
            try:
                await waiter.wait()
            finally:
                if not waiter.is_over:
                    self.line.leave(waiter)


def _as_told(error: RequestError, api_version: int) -> RequestError:
    """A coordinator's refusal, as producers of this Produce version understand it."""
    if error.code in _COMES_AGAIN:
        code = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error.code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif error.code is ErrorCode.TRANSACTION_ABORTABLE and api_version < _ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    else:
        return error
    return RequestError(code, error.message)
