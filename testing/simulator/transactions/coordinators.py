"""The broker's coordinators, verifier and sender of markers, with what they wait for played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from tidemark.broker.config import BrokerSettings
from tidemark.broker.groups.coordinator import GroupCoordinator
from tidemark.broker.groups.group_partition import GroupPartition
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.verifying import (
    ANSWER_SECONDS_MAX,
    RETRY_SECONDS,
    Asking,
    Verifier,
    by_coordinator,
    is_to_be_asked_again,
)
from tidemark.broker.transactions.coordinator import TransactionCoordinator
from tidemark.broker.transactions.marker_sender import MarkerSender
from tidemark.broker.transactions.own_transactions import by_own
from tidemark.broker.transactions.transaction_partition import TransactionPartition
from tidemark.broker.transactions.whereabouts import Places
from tidemark.partitions.state_machines.groups.reading_back import ReadBack as GroupsReadBack
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.transactions.reading_back import ReadBack
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.transactions.calls import Calls
from tidemark.testing.simulator.transactions.stand_ins import Services, Timers, Topics
from tidemark.testing.simulator.transactions.tasks import Tasks, sleep

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

_CHUNK_BYTES: Final = 2000
_TakeBatch = Callable[[bytes, BatchHeader, int], None]


@cache
def settings() -> BrokerSettings:
    """As usual, but for what would take minutes."""
    return BrokerSettings(
        group_initial_rebalance_delay_ms=100,
        group_min_session_timeout_ms=100,
        group_consumer_session_timeout_ms=2000,
        group_consumer_heartbeat_interval_ms=300,
    )


class Coordinators:
    """All of one process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.timers = timers = Timers(process)
        self.services = services = Services(process, timers)
        self.topics = topics = Topics(process.world.groups)
        self.replicas = topics.open(process, services)
        self.calls = Calls(process)
        # Any: what stands in for the broker's parts has the methods that are called, no more.
        tasks: Any = Tasks(process.later)
        seen: Any = topics
        real = services.as_real()
        places = Places(seen, process.leader_of, timers.as_real())
        sender = _MarkerSender(
            places,
            self.calls.ask,
            tasks,
            timers.as_real(),
            services.metrics.transactions,
        )
        sender.process = process
        self.transactions = _Transactions(
            settings(), seen, sender, tasks, real, timers=timers.as_real()
        )
        self.groups = _Groups(
            settings(), seen, tasks, real, timers=timers.as_real(), group_configs=_no_configs
        )
        ask: Any = self.calls.ask
        self.verifier = _Verifier(
            seen,
            tasks,
            services.turn,
            by_coordinator(self.transactions.find, ask),
            at_once=by_own(self.transactions),
        )
        self.verifier.process = process

    @property
    def is_loading(self) -> bool:
        return self.transactions.is_loading or self.groups.is_loading


def _no_configs(_group_id: str) -> Mapping[str, str]:
    """No group has settings of its own."""
    return {}


class _Transactions(TransactionCoordinator):
    @property
    def is_loading(self) -> bool:
        return self._topic.is_loading

    def served(self) -> list[TransactionPartition]:
        return [each for each in self._topic.served() if each.is_current]

    async def load(self, replica: Replica) -> Callable[[], TransactionPartition]:
        found = ReadBack()
        await _read_back(_process_of(replica), replica, found.take_batch)
        values = found.values()
        return lambda: self._serve(replica, values)


class _Groups(GroupCoordinator):
    _member_ids = count(1)

    @property
    def is_loading(self) -> bool:
        return self._topic.is_loading

    @property
    def settings(self) -> GroupSettings:
        return self._group_settings

    def served(self) -> list[GroupPartition]:
        return [each for each in self._topic.served() if each.is_current]

    async def load(self, replica: Replica) -> Callable[[], GroupPartition]:
        found = GroupsReadBack()
        await _read_back(_process_of(replica), replica, found.take_batch)
        replay = found.replay()

        def serve() -> GroupPartition:
            now = Instant(ticks_ms=int(self._timers.now() * 1000), wall_ms=self._clock.now_ms())
            return self._serve(replica, replay.finish(self._group_settings, now, self._topics_seen))

        return serve


def _process_of(replica: Replica) -> Process:
    services = cast(Services, replica._services)
    return services.process


async def _read_back(process: Process, replica: Replica, take: _TakeBatch) -> None:
    """As `coordinating.reading` does it, with a wait for each piece."""
    offset = replica.log_start
    process.moment("coordinator loading")
    while offset < replica.high_watermark:
        await sleep(process.later, process.disk_seconds("write"))
        data = replica.read(offset, bytes_max=_CHUNK_BYTES, at_least_one=True).read()
        for at, header in iter_headers(data):
            take(data, header, at)
            offset = header.next_offset


class _MarkerSender(MarkerSender):
    process: Process

    async def _end_of_turn(self) -> None:
        await sleep(self.process.later, 0.0)

    async def _asked(
        self, leader: NodeId, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | None:
        try:
            return await self._ask(leader, request, WriteTxnMarkersResponse)
        except RequestError:
            return None


class _Verifier(Verifier):
    process: Process

    async def _run(self, asking: Asking) -> None:
        process = self.process
        until = process.now + ANSWER_SECONDS_MAX
        answered = await self._ask_once(asking)
        while is_to_be_asked_again(answered) and process.now < until:
            await sleep(process.later, RETRY_SECONDS)
            answered = await self._ask_once(asking)
        self._settle(asking, answered)
        process.turn()
