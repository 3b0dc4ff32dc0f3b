"""The coordinator of transactions on this broker: finds each id's partition and asks it.

`__transaction_state` is made when a client first looks for a coordinator. Who leads a partition of
it coordinates the transactional ids in it, as it is with groups.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.coordinating.served_topic import NotServed, ServedTopic
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.network.requests import Pending
from tidemark.broker.network.timers import Timers
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.transactions.marker_sender import Ask, MarkerSender
from tidemark.broker.transactions.whereabouts import Places
from tidemark.partitions.state_machines.topic_names import TRANSACTION_STATE
from tidemark.partitions.state_machines.transactions.settings import TransactionSettings
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId, TopicPartition

# What serves a partition is imported when there is one: a broker starts without.
if TYPE_CHECKING:
    from tidemark.broker.transactions.transaction_partition import TransactionPartition
    from tidemark.partitions.state_machines.transactions.requests import (
        Answer,
        Request,
        Verify,
        VerifyAnswer,
    )
    from tidemark.partitions.state_machines.transactions.transaction import Transaction

AnswerT = TypeVar("AnswerT", bound="Answer")
R = TypeVar("R")

# Decoding is Python, so more at once would not be faster, only later for the first.
_LOADS_AT_ONCE = 1


class TransactionCoordinator:
    """All transactional ids of this broker. Made by `open_transactions`; on the loop's thread.

    What asks for one id raises `RequestError` while its partition is not served.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        topics: Topics,
        sender: MarkerSender,
        tasks: trio.Nursery,
        services: ReplicaServices,
        *,
        timers: Timers,
    ) -> None:
        self._settings = settings
        self._sender = sender
        self._timers = timers
        self._clock = services.clock
        self._metrics = services.metrics.transactions
        self._transaction_settings = TransactionSettings(
            timeout_max_ms=settings.transaction_max_timeout_ms,
            id_expiration_ms=settings.transactional_id_expiration_ms,
        )
        self._load_limiter = trio.CapacityLimiter(_LOADS_AT_ONCE)
        self._topic: ServedTopic[TransactionPartition] = ServedTopic(
            TRANSACTION_STATE, self, topics, services, tasks
        )
        services.metrics.transactions.ids_by_state = self._ids_by_state
        self._topic.start()
        self._expire_later()

    async def ensure_topic(self) -> None:
        """Make the topic that transactions are kept in, if it is not there.

        Raises `RequestError`.
        """
        await self._topic.ensure()

    @property
    def has_resigned(self) -> bool:
        """Whether the broker is stopping."""
        return self._topic.has_resigned

    def find(self, transactional_id: str) -> NodeId:
        """The broker that coordinates the id. Raises `RequestError` if there is none now."""
        return self._topic.find_leader(transactional_id)

    def partition_of(self, transactional_id: str) -> TopicPartition | None:
        """Where it is kept; `None` as long as there is no topic."""
        number = self._topic.partition_of(transactional_id)
        return None if number is None else TopicPartition(TRANSACTION_STATE, number)

    async def wait_loaded(self) -> None:
        """Until no partition is being read back any more."""
        await self._topic.wait_loaded()

    def ask(
        self, request: Request, kind: type[AnswerT], respond: Callable[[AnswerT], R]
    ) -> Pending[R]:
        """The response that `respond` makes of the id's answer, which is of `kind`."""
        return self._topic.serving(request.transactional_id).ask(request, kind, respond)

    def verify(self, request: Verify) -> VerifyAnswer:
        """Whether partitions are in the open transaction: known at once, and nothing is changed."""
        return self._topic.serving(request.transactional_id).shard.verify(request)

    def needs_fresh_id(self, transactional_id: str) -> bool:
        """Whether a producer or an end may need a producer id that nobody has had."""
        return self._topic.serving(transactional_id).shard.needs_fresh_id(transactional_id)

    def describe(
        self, transactional_id: str
    ) -> tuple[Transaction, frozenset[TopicPartition]] | None:
        """What the log has of it, and which partitions of its open transaction have no marker."""
        shard = self._topic.serving(transactional_id).shard
        value = shard.describe(transactional_id)
        return None if value is None else (value, shard.unmarked(transactional_id))

    def list_ids(self) -> list[tuple[str, Transaction]]:
        """All that are coordinated here. Raises `RequestError` while some are still being read."""
        if self._topic.is_loading:
            raise RequestError(NotServed.LOADING.value)
        return [each for partition in self._topic.served() for each in partition.shard.list_ids()]

    def resign(self) -> None:
        """The broker is stopping: whoever waits is sent to look for another coordinator."""
        self._topic.resign()

    def stop(self) -> None:
        self._topic.stop()

    # For the topic

    def begin(self, replica: Replica) -> TransactionPartition:
        return self._serve(replica, {})

    async def load(self, replica: Replica) -> Callable[[], TransactionPartition]:
        from tidemark.broker.transactions.transaction_loading import read_transactions

        values = await read_transactions(replica, limiter=self._load_limiter)
        return lambda: self._serve(replica, values)

    def _serve(self, replica: Replica, values: dict[str, Transaction]) -> TransactionPartition:
        from tidemark.broker.transactions.transaction_partition import TransactionPartition

        return TransactionPartition(
            replica,
            self._transaction_settings,
            values,
            self._sender,
            timers=self._timers,
            clock=self._clock,
            metrics=self._metrics,
            batch_bytes_max=self._settings.socket_request_max_bytes,
        )

    def _ids_by_state(self) -> dict[str, int]:
        """May be called from any thread."""
        from tidemark.partitions.state_machines.transactions.transaction import TransactionState

        counts = dict.fromkeys((state.title for state in TransactionState), 0)
        for partition in self._topic.served():
            for _, value in partition.shard.list_ids():
                counts[value.state.title] += 1
        return counts

    def _expire_later(self) -> None:
        interval_ms = self._settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timers.after(interval_ms / 1000, self._expire_ids)

    def _expire_ids(self) -> None:
        for partition in self._topic.served():
            partition.expire_ids()
        self._expire_later()


@asynccontextmanager
async def open_transactions(
    settings: BrokerSettings,
    topics: Topics,
    services: ReplicaServices,
    ask: Ask,
    *,
    timers: Timers,
) -> AsyncIterator[TransactionCoordinator]:
    """The coordinator, which reads its ids back, and has markers written, within this block."""
    async with trio.open_nursery() as tasks:
        places = Places(topics, services.driver.leader_of, timers)
        sender = MarkerSender(places, ask, tasks, timers, services.metrics.transactions)
        coordinator = TransactionCoordinator(
            settings, topics, sender, tasks, services, timers=timers
        )
        try:
            yield coordinator
        finally:
            coordinator.stop()
            tasks.cancel_scope.cancel()
