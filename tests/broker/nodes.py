"""A node without sockets: real topics on a real disk, for tests of handlers and of topics."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from tidemark.broker.background import open_background
from tidemark.broker.balancing.open_balancing import Balancing, open_balancing
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.groups.coordinator import GroupCoordinator, open_coordinator
from tidemark.broker.handlers.between_brokers import Asking
from tidemark.broker.metadata.introduction import describe_own
from tidemark.broker.metadata.open_metadata import Metadata, open_metadata
from tidemark.broker.metadata.producer_ids import ProducerIds
from tidemark.broker.metrics import Metrics
from tidemark.broker.moves.desk import MoveDesk, open_moves
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import RequestContext, Session
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Node, SystemClock
from tidemark.broker.peers import ask_to_join
from tidemark.broker.peers.hello import Peer
from tidemark.broker.reassigning.open_reassigning import Reassigning, open_reassigning
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.replicas.services import open_services
from tidemark.broker.replicas.verifying import Verifier, by_coordinator
from tidemark.broker.transactions.coordinator import TransactionCoordinator, open_transactions
from tidemark.broker.transactions.own_transactions import by_own
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)


class NoNetwork:
    """Of a broker that is its whole cluster, and stays that."""

    def __init__(self) -> None:
        self.up: Mapping[NodeId, int] = {}
        self.versions: Mapping[NodeId, int] = {}

    def enter(self, cluster_id: str) -> None:
        pass

    def registered(self) -> None:
        pass

    def set_peers(self, peers: Mapping[NodeId, Peer]) -> None:
        pass

    def trouble_with(self, node: NodeId) -> str:
        raise AssertionError(f"there is no broker {node}")

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        raise RequestError(ErrorCode.NETWORK_EXCEPTION, f"there is no connection to broker {node}")


def context(api_version: int, *, listener: Address | None = None) -> RequestContext:
    session = Session(
        connection_id=1,
        client_host="127.0.0.1",
        listener=listener or Address("127.0.0.1", 9092),
    )
    return RequestContext(api_version=api_version, client_id="test", session=session)


@asynccontextmanager
async def open_node(data_dir: Path, **settings: Any) -> AsyncIterator[Node]:  # Any: any setting
    """A node on `data_dir`, with its topics; opening the same again is a restart."""
    given = attrs.evolve(BrokerSettings(data_dir=data_dir), **settings)
    turn = Turn()
    timers = Timers(turn)
    failures: list[OSError] = []
    asking = Asking()
    async with _alone(), open_background() as tasks:
        tasks.start_soon(timers.run)
        async with (
            open_services(
                given,
                OsFiles(),
                tasks=tasks,
                turn=turn,
                timers=timers,
                clock=SystemClock(),
                metrics=Metrics(topics_max=given.metrics_topics_max),
                odd_events=OddEvents(logging.getLogger("tests")),
                failed=failures.append,
            ) as services,
            open_metadata(
                given, services, _own(given, services), NoNetwork(), {}, ask=ask_to_join
            ) as metadata,
            open_coordinator(
                given,
                metadata.topics,
                services,
                timers=timers,
                group_configs=lambda group_id: metadata.cluster.state.group_configs(group_id),
            ) as coordinator,
            open_transactions(
                given, metadata.topics, services, asking.ask, timers=timers
            ) as transactions,
            open_balancing(given, metadata, services, NoNetwork(), {}) as balancing,
            open_moves(given, services, metadata, is_full=balancing.gathering.is_full) as moves,
            open_reassigning(
                given, services, metadata, is_full=balancing.gathering.is_full
            ) as reassigning,
        ):
            ask = by_coordinator(transactions.find, asking.ask)
            verifier = Verifier(metadata.topics, tasks, turn, ask, at_once=by_own(transactions))
            node = asking.node = _node(
                given,
                metadata,
                services,
                coordinator,
                verifier,
                transactions,
                moves,
                reassigning,
                balancing,
                timers,
            )
            yield node
        tasks.cancel_scope.cancel()
    assert not failures


def _own(settings: BrokerSettings, services: ReplicaServices) -> BrokerMetadata:
    listeners = {each.name: each.advertised or each.address for each in settings.client_listeners()}
    return describe_own(settings, services.run, listeners, settings.peer_listen)


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """One error as itself, out of the groups that nurseries make of it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


def _node(
    settings: BrokerSettings,
    metadata: Metadata,
    services: ReplicaServices,
    coordinator: GroupCoordinator,
    verifier: Verifier,
    transactions: TransactionCoordinator,
    moves: MoveDesk,
    reassigning: Reassigning,
    balancing: Balancing,
    timers: Timers,
) -> Node:
    return Node(
        settings=settings,
        node_id=services.node_id,
        cluster_id=metadata.cluster_id,
        cluster=metadata.cluster,
        topics=metadata.topics,
        brokers=metadata.brokers,
        controller=metadata.controller,
        calls=NoNetwork(),
        producer_ids=ProducerIds(metadata.controller.allocate_producer_ids),
        coordinator=coordinator,
        verifier=verifier,
        transactions=transactions,
        moves=moves,
        reassigning=reassigning,
        balancing=balancing,
        timers=timers,
        disk=services.disk,
        room=services.room,
        metrics=services.metrics,
        clock=services.clock,
    )
