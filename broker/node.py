"""What every handler can reach: the parts of one running broker, made by `open_node`."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol

import trio

from tidemark.broker.access.access import Access
from tidemark.broker.quotas.quotas import Quotas
from tidemark.broker.replicas.fetch_sessions import FetchSessions
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.balancing.open_balancing import Balancing
    from tidemark.broker.config import BrokerSettings
    from tidemark.broker.groups.coordinator import GroupCoordinator
    from tidemark.broker.leaders_elsewhere import LeadersElsewhere
    from tidemark.broker.metadata.brokers import Brokers
    from tidemark.broker.metadata.cluster_log import ClusterLog
    from tidemark.broker.metadata.controller import Controller
    from tidemark.broker.metadata.producer_ids import ProducerIds
    from tidemark.broker.metadata.topics import Topics
    from tidemark.broker.metrics import Metrics
    from tidemark.broker.moves.desk import MoveDesk
    from tidemark.broker.network.timers import Timers
    from tidemark.broker.peers.asking import Calls
    from tidemark.broker.reassigning.open_reassigning import Reassigning
    from tidemark.broker.replicas.disk import DiskWriter
    from tidemark.broker.replicas.room_watch import RoomWatch
    from tidemark.broker.replicas.verifying import Verifier
    from tidemark.broker.transactions.coordinator import TransactionCoordinator
    from tidemark.protocol.types import NodeId

_AUTHENTICATING_MAX: Final = 4


class Clock(Protocol):
    """The time of day, for timestamps and retention. Deadlines are on trio's clock instead."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


@dataclass(slots=True, kw_only=True)
class Node:
    """One broker's parts. Handlers read it; only `open_node.py` puts it together."""

    settings: BrokerSettings
    node_id: NodeId
    cluster_id: str
    cluster: ClusterLog
    topics: Topics
    brokers: Brokers
    controller: Controller
    calls: Calls
    producer_ids: ProducerIds
    coordinator: GroupCoordinator
    verifier: Verifier
    transactions: TransactionCoordinator
    moves: MoveDesk
    reassigning: Reassigning
    balancing: Balancing
    disk: DiskWriter
    room: RoomWatch
    metrics: Metrics
    timers: Timers
    clock: Clock
    leaders_elsewhere: LeadersElsewhere | None = None
    """Once somebody is asked."""
    fetch_sessions: FetchSessions = field(init=False)
    quotas: Quotas = field(init=False)
    access: Access = field(init=False)
    searching: trio.CapacityLimiter = field(init=False)
    """Who looks into a batch for a time: one at a time, for it is the loop that reads it."""

    authenticating: trio.CapacityLimiter = field(init=False)
    """Who proves who it is. Anybody may begin that, and is not to have all threads."""

    def __post_init__(self) -> None:
        settings, sessions = self.settings, self.metrics.reads
        self.authenticating = trio.CapacityLimiter(_AUTHENTICATING_MAX)
        self.searching = trio.CapacityLimiter(1)
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
        sessions.fetch_sessions = self.fetch_sessions.__len__
        sessions.evicted_sessions = lambda: self.fetch_sessions.evicted
        window_seconds = settings.quota_window_size_seconds
        self.access = Access(
            self.cluster,
            is_on=bool(settings.authorizer_class_name),
            super_users=settings.super_users,
            allows_without_acls=settings.allow_everyone_if_no_acl_found,
        )
        self.access.on_changed = self.coordinator.topics_changed
        self.quotas = Quotas(
            self.cluster,
            self.metrics.quotas,
            # Of the windows that Kafka looks at, the last one has just begun.
            burst_seconds=(settings.quota_window_num - 1) * window_seconds,
            request_throttle_max_seconds=window_seconds,
        )
