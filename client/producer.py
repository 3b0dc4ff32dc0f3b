"""Sending records: see `Producer`.

`send` puts a record into a batch of its partition and returns (`taking_in.py`). One task for each
broker takes batches from there and sends them (`sender.py`; `routes.py` says which); what happens
to a batch is decided by its partition's queue (`accumulator.py`). Transactions are here.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import trio

from tidemark.client.accumulator import ProducerIdentity
from tidemark.client.coordinator import GroupMembership
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.partitioner import StickyPartitions
from tidemark.client.producer_settings import ProducerSettings
from tidemark.client.routes import Routes
from tidemark.client.taking_in import OpenTransaction, TakingIn
from tidemark.client.transaction_descriptions import PreparedTransaction
from tidemark.client.transactions import TransactionCalls
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import TopicPartition

_ABORT_SECONDS_MAX: Final = 5.0


class Producer(TakingIn):
    """Sends records; made by `Client.producer`."""

    def __init__(
        self,
        routes: Routes,
        settings: ProducerSettings,
        sticky: StickyPartitions,
        *,
        is_idempotent: bool,
        transactions: TransactionCalls | None,
    ) -> None:
        super().__init__(
            routes,
            settings,
            sticky,
            is_idempotent=is_idempotent,
            is_transactional=transactions is not None,
        )
        self._transactions = transactions
        self._must_take_over = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is sent within this block is read together or not at all.

        At its end everything is stored and committed. If the block fails or is cancelled, or a
        record could not be stored, it is aborted, and that error is raised. If the commit itself
        fails with an `OSError` or is cancelled, only looking will tell whether it was made; with
        `RequestError` PRODUCER_FENCED another producer has the transactional id now, or it came
        after the transaction's timeout, as have records that are refused with
        INVALID_PRODUCER_EPOCH: which it was, the next transaction says, which is refused
        (PRODUCER_FENCED) or begins. After the timeout, Kafka's brokers say INVALID_TXN_STATE.
        """
        calls = self._require_transactions()
        self._require_open()
        with self._one_at_a_time() as transaction:
            if self._must_take_over:
                self._go_on(await calls.take_over())
            self._is_shut = self._is_closed
            try:
                yield
                await self._store(transaction)
            except BaseException:
                await self._abort(calls, transaction)
                raise
            if transaction.is_prepared:
                self._must_take_over = True
            elif not transaction.is_empty:
                self._must_take_over = True
                self._go_on(await calls.end(commit=True))

    @contextmanager
    def _one_at_a_time(self) -> Iterator[OpenTransaction]:
        """It is open until its end has been answered: another one that begins aborts it."""
        if self._transaction is not None:
            raise ValueError("a transaction is open; they cannot be nested")
        self._transaction = OpenTransaction()
        try:
            yield self._transaction
        finally:
            self._transaction, self._is_shut = None, True

    async def prepare_transaction(self) -> PreparedTransaction | None:
        """Store all of the open transaction, and leave it to somebody else to end it.

        Who does needs what this returns, for `Admin.end_transaction`; None if nothing was sent, and
        there is nothing to end. The block of `transaction` can only be left now. If nobody ends
        it, it is aborted when the transaction times out, and when a producer of the same
        transactional id begins.
        """
        calls, transaction = self._require_transactions(), self._transaction
        if transaction is None:
            raise ValueError("no transaction is open")
        await self._store(transaction)
        if transaction.is_empty:
            return None
        transaction.is_prepared = True
        return calls.prepared()

    async def _store(self, transaction: OpenTransaction) -> None:
        """Take nothing more in, and wait until what was is stored. Raises the first failure."""
        self._is_shut = True
        await self.flush()
        if transaction.failure is not None:
            raise transaction.failure

    def refusals(self) -> dict[TopicPartition, str]:
        """What was last answered where records wait to be sent again, by partition.

        Empty where all goes well. A partition that stays here does so until its broker takes
        records again, because it has room on its disk, say; or until the delivery timeout.
        """
        return {
            TopicPartition(queue.topic, queue.partition): queue.refusal
            for queue in self._routes.queues()
            if queue.refusal is not None
        }

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        group: GroupMembership,
    ) -> None:
        """Commit offsets for a group together with the open transaction.

        `group` is a consumer's `group_membership`: if it has lost its partitions to another member,
        this raises `RequestError`, and the transaction is to be left by an error.
        """
        if self._transaction is None or self._is_shut:
            raise ValueError("no transaction is open")
        if not isinstance(group, GroupMembership):
            raise TypeError(f"group is a consumer's group_membership, not {group!r}")
        if not offsets:
            return
        self._transaction.is_empty = False
        await self._require_transactions().commit_offsets(group, offsets)

    async def _abort(self, calls: TransactionCalls, transaction: OpenTransaction) -> None:
        self._is_shut = True
        error = RequestError(ErrorCode.TRANSACTION_ABORTABLE, "its transaction was aborted")
        for queue in self._routes.queues():
            queue.abandon(error)
        if transaction.is_empty:
            return
        self._must_take_over = True
        # What comes late of it is of an epoch that has passed. If there is no answer in time, the
        # next one begins with another epoch, and that aborts it too.
        with trio.move_on_after(_ABORT_SECONDS_MAX, shield=True), suppress(RequestError, OSError):
            self._go_on(await calls.end(commit=False))

    def _go_on(self, identity: ProducerIdentity) -> None:
        self._must_take_over = False
        self._routes.begin(identity)

    def _require_transactions(self) -> TransactionCalls:
        if self._transactions is None:
            raise ValueError("this producer has no transactional_id")
        return self._transactions
