"""Balancing on one broker: it reports what it leads, and plans while it leads the metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.balancing.balancer import Balancer
from tidemark.broker.balancing.broker_states import BrokerStates, Consequences
from tidemark.broker.balancing.changes import OutboxLeaders
from tidemark.broker.balancing.descriptions import Description, describe
from tidemark.broker.balancing.gathering import Gathering, now
from tidemark.broker.balancing.history import History
from tidemark.broker.balancing.own_loads import OwnLoads
from tidemark.broker.balancing.reports import Reporter, Reports
from tidemark.broker.balancing.rules import rules_of
from tidemark.broker.looks import next_look
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY, ClusterLog
from tidemark.broker.metadata.neighbours import Network
from tidemark.broker.metadata.open_metadata import Metadata
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.balancing.leaders import Plan, plan
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.load_report import LoadReportRequest, LoadReportResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.types import Epoch, NodeId
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.config import BrokerSettings
    from tidemark.broker.peers.calls import PeerHandler

_WATCH_SECONDS: Final = 0.5
_HAND_OVER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """What requests ask about. For the broker that leads the metadata."""

    gathering: Gathering
    balancer: Balancer
    states: BrokerStates

    async def balance(self, *, dry_run: bool, at_once: bool) -> Plan:
        """The whole way to where leaders are even, which is begun unless it is a `dry_run`."""
        rules = self.balancer.rules
        rules = rules.without_waiting() if at_once else rules
        snapshot = await self.gathering.gather_all()
        made = await run_in_thread(plan, snapshot, rules.without_bounds(), SystemRandom())
        if not dry_run:
            self.balancer.ask(at_once=at_once)
        return made

    async def set_state(
        self, node: NodeId, state: BrokerState, *, force: bool, dry_run: bool
    ) -> Consequences:
        return await self.states.set(node, state, force=force, dry_run=dry_run)

    async def describe(
        self, controller: NodeId, nodes: Collection[int] | None
    ) -> tuple[list[Description], int]:
        """These brokers, or all, and the time by the clock of `Broker.up_since_ms`. Raises
        `RequestError` for one that is not there."""
        snapshot = await self.gathering.gather_told()
        rules, progress = self.balancer.rules, self.balancer.progress
        metadata = self.gathering.metadata_group()
        found = await run_in_thread(describe, snapshot, controller, rules, progress, metadata)
        known = {each.broker.node_id for each in found}
        for node in () if nodes is None else nodes:
            if node not in known:
                raise RequestError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {node}")
        return [e for e in found if nodes is None or e.broker.node_id in nodes], snapshot.now_ms


@asynccontextmanager
async def open_balancing(
    settings: BrokerSettings,
    metadata: Metadata,
    services: ReplicaServices,
    network: Network,
    handlers: MutableMapping[type[Message], PeerHandler],
) -> AsyncIterator[Balancing]:
    """The balancer, as long as this block lasts. `handlers` gets what takes others' reports."""
    cluster, brokers = metadata.cluster, metadata.brokers
    history, rules = History(), rules_of(settings)
    reports = Reports(partial(_leading_epoch, cluster, brokers), now)
    leaders = OutboxLeaders(services.driver.node.outbox)
    gathering = Gathering(lambda: cluster.state, brokers, reports, history, leaders)
    brokers.is_full = gathering.is_full
    balancer = Balancer(
        cluster,
        gathering,
        history,
        rules,
        is_enabled=settings.leader_balance_enable,
        interval_seconds=settings.leader_balance_interval_ms / 1000,
        clock=services.clock,
        metrics=services.metrics.balance,
        hand_over_metadata=partial(_hand_over_metadata, services),
        rng=SystemRandom(),
    )
    cluster.listen(balancer.applied)
    reports.on_disk = balancer.wake
    handlers[LoadReportRequest] = partial(_take_report, reports)
    own = OwnLoads(services.node_id, partial(_activity, services))
    reporter = Reporter(
        partial(brokers.leader_of, CLUSTER_KEY),
        partial(own.look_at_all, metadata.topics, brokers),
        partial(_tell, services.node_id, reports, network),
        is_full=lambda: services.room.is_out,
    )
    async with trio.open_nursery() as tasks:
        tasks.start_soon(_watch_brokers, services, brokers, history)
        tasks.start_soon(reporter.run)
        tasks.start_soon(balancer.run)
        yield Balancing(
            gathering=gathering,
            balancer=balancer,
            states=BrokerStates(cluster, gathering, rules, SystemRandom()),
        )
        tasks.cancel_scope.cancel()


def _activity(services: ReplicaServices) -> tuple[int, ...]:
    """Another one once anything was written, read or replicated."""
    outbox = services.driver.node.outbox
    return outbox.staging, outbox.leaderships, services.metrics.record_bytes


def _leading_epoch(cluster: ClusterLog, brokers: Brokers) -> Epoch | None:
    return brokers.leader_of(CLUSTER_KEY)[1] if cluster.leads else None


async def _tell(
    me: NodeId, reports: Reports, network: Network, leader: NodeId, report: LoadReportRequest
) -> LoadReportResponse:
    if leader == me:
        return reports.take(me, report)
    return await network.call(leader, report, LoadReportResponse)


async def _take_report(
    reports: Reports, reporter: NodeId | None, request: LoadReportRequest
) -> LoadReportResponse:
    if reporter is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "a report without a Hello")
    return reports.take(reporter, request)


async def _watch_brokers(services: ReplicaServices, brokers: Brokers, history: History) -> None:
    """On every broker: whoever leads the metadata next should know how long the others are up."""
    peers = services.driver.node.peers
    while True:
        known, now_ms = brokers.registered, now()
        for node in known:
            incarnation = 0 if node == services.node_id else peers.incarnation(node)
            history.saw_broker(
                node,
                is_alive=brokers.is_alive(node),
                incarnation=incarnation,
                now_ms=now_ms,
            )
        history.forget_brokers(known)
        await trio.sleep_until(next_look(_WATCH_SECONDS))


def _hand_over_metadata(services: ReplicaServices, target: NodeId) -> None:
    def begin() -> None:
        deadline = trio.current_time() + _HAND_OVER_SECONDS
        services.driver.node.move_leader(CLUSTER_KEY, target, deadline)
        services.driver.touch()

    services.turn.run(begin)
