"""All other brokers: connections kept to them, connections taken from them, calls both ways.

What the rest of the broker sees of it is `send`, `call` and `PeerEvents`. It does not know what
groups are, nor who leads what.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Final, TypeVar

import trio

from tidemark.broker.background import open_background
from tidemark.broker.config import Address
from tidemark.broker.looks import next_look
from tidemark.broker.metrics.peer_counts import PeerEnd, PeerMetrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers.belonging import Belonging
from tidemark.broker.peers.calls import PeerHandlers, answer_call, lost
from tidemark.broker.peers.encoding import SharedFrames
from tidemark.broker.peers.frame_socket import SocketServices
from tidemark.broker.peers.hello import (
    HostPort,
    Peer,
    Refusal,
    Sighting,
    answer,
    judge,
    peer_address_of,
)
from tidemark.broker.peers.incoming import Incoming
from tidemark.broker.peers.joining import ask_to_join
from tidemark.broker.peers.link import Link
from tidemark.broker.peers.listening import Accepting, BoundPeerListener
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.broker.peers.services import PeerEvents, PeerServices
from tidemark.broker.peers.strangers import Strangers
from tidemark.broker.peers.versions import refused_join
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.errors import MalformedMessage, ProtocolError
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.peer_frames import PeerHeader, is_spoken
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)

FRAME_BYTES_MAX: Final = 101 * 1024 * 1024
"""The largest batch that clients may send by default, and what is around it."""
# How often certificates are looked at.
_RENEWAL_SECONDS: Final = 1.0
# Of brokers that say they belong to the cluster, whether the cluster knows them or not.
_NODES_MAX: Final = 1_000


class PeerNetwork:
    """Made by `open_peer_network`. Everything is called on the loop's thread."""

    def __init__(
        self,
        services: PeerServices,
        *,
        address: Address,
        handlers: PeerHandlers,
    ) -> None:
        self.address = address
        """Where it really listens."""
        self._services = services
        self._handlers = handlers
        self._tasks = services.tasks
        self._links: dict[NodeId, Link] = {}
        self._dialing: dict[NodeId, trio.CancelScope] = {}
        # Who is starting belongs to its cluster before it has read who else does.
        self._is_told = False
        self.strangers = Strangers(services, self)
        self.stop_accepting: Callable[[], None] = lambda: None

    @property
    def own(self) -> BrokerMetadata:
        """This broker, as it introduces itself."""
        return self._services.own

    @property
    def up(self) -> dict[NodeId, int]:
        """The brokers that are up, with their incarnations."""
        return {node: link.up for node, link in self._links.items() if link.up is not None}

    @property
    def versions(self) -> dict[NodeId, int]:
        """The newest version of the protocol between brokers that each speaks and this one does,
        too, of those that have been connected; as it was last, if they are not now."""
        return {
            node: link.version for node, link in self._links.items() if link.version is not None
        }

    def trouble_with(self, node: NodeId) -> str:
        """Why a broker that is not up is not, in a few words."""
        link = self._links.get(node)
        return "it is not known here" if link is None else link.trouble

    def enter(self, cluster_id: str) -> None:
        """The cluster that this broker belongs to. Before, it only answers who wants to join."""
        assert self._services.cluster_id in (None, cluster_id)
        self._services.cluster_id = cluster_id

    def registered(self) -> None:
        """The cluster's metadata have this broker from now on, so others should know it."""
        self._services.belonging.registered()

    def set_peers(self, peers: Mapping[NodeId, Peer]) -> None:
        """All brokers of the cluster; this one is passed over, and who is not there any more is
        left."""
        assert self._services.cluster_id is not None, "enter() comes first"
        self._services.sockets.turn.run(partial(self._set_peers, peers))

    def _set_peers(self, peers: Mapping[NodeId, Peer]) -> None:
        self._is_told = True
        for node in self._links.keys() - peers.keys():
            if node in self._dialing:
                self._dialing.pop(node).cancel()
            self._links[node].leave(PeerEnd.LEFT_OUT, "it does not belong to the cluster any more")
            del self._links[node], self._services.sockets.metrics.up[node]
        for node, peer in peers.items():
            if node != self.own.node_id:
                self._link(node).aim(peer)
                if node not in self._dialing:
                    scope = self._dialing[node] = trio.CancelScope()
                    self._tasks.start_soon(_keep_connected, self._links[node], scope)

    def send(self, sends: Mapping[NodeId, Sequence[PeerMessage]]) -> None:
        """Say something to brokers once the turn is over. It is lost to those that are not up."""
        shared = SharedFrames()
        for node, messages in sends.items():
            link = self._links.get(node)
            if link is not None:
                link.send(messages, shared)

    def unsent_bytes(self, node: NodeId) -> int:
        """What waits to be sent to a broker, in memory or in files."""
        link = self._links.get(node)
        return 0 if link is None or link.outgoing is None else link.outgoing.unsent_bytes

    async def call(self, node: NodeId, request: Message, answer_type: type[M]) -> M:
        """Ask a broker something; how long that may take is the caller's to say.

        Raises `RequestError` (NETWORK_EXCEPTION) if the broker is not connected, or no more before
        its answer: whether it has done what was asked is not known then.
        """
        link = self._links.get(node)
        if link is None or link.is_cut or link.outgoing is None:
            raise lost(f"broker {node} is not connected")
        response = await link.outgoing.call(request)
        assert isinstance(response, answer_type)
        return response

    async def ask_to_join(self, address: HostPort, request: JoinRequest) -> JoinResponse:
        """Ask whoever is at `address`, as `joining.ask_to_join` does."""
        return await ask_to_join(address, request, self._services.tls)

    def cut(self, node: NodeId) -> None:
        """For tests: nothing passes to that broker or from it, and nobody is told."""
        self._link(node).cut()

    def heal(self, node: NodeId) -> None:
        """For tests: the end of `cut`. What was not delivered is lost, with its connection."""
        self._services.sockets.turn.run(self._link(node).heal)

    def greeted(self, incoming: Incoming, hello: HelloRequest) -> HelloResponse:
        """A Hello has come; the connection is taken or refused."""
        link = self._links.get(NodeId(hello.node_id))
        if link is None and len(self._links) >= _NODES_MAX:
            raise MalformedMessage(f"more than {_NODES_MAX} node ids have come already")
        known = None if link is None else link.where.known
        refused = judge(hello, self.own, self._services.cluster_id, known)
        if refused is None:
            self.strangers.forget(incoming)
            self._link(NodeId(hello.node_id)).take_in(incoming, hello)
        else:
            self._services.sockets.metrics.refused_hellos.inc()
            if refused.refusal is not Refusal.NO_CLUSTER_YET:
                self._warn_refused(incoming, refused.reason)
        is_known = NodeId(hello.node_id) in self._dialing or not self._is_told
        return answer(hello, self.own, refused, is_known=is_known)

    def _warn_refused(self, incoming: Incoming, reason: str | None) -> None:
        self._services.sockets.odd_events.warn(
            "refused brokers", "refused a broker at %s: %s", incoming.address, reason
        )

    def received(self, incoming: Incoming, messages: list[PeerMessage]) -> None:
        assert incoming.node_id is not None
        self._services.events.receive(incoming.node_id, messages)

    def called(self, incoming: Incoming, header: PeerHeader, request: Message) -> None:
        if isinstance(request, JoinRequest) and not is_spoken(header.version):
            refused = refused_join(request, header.version, self.own.node_id)
            self._warn_refused(incoming, refused.error_message)
            incoming.answer(header, refused)
            return
        if isinstance(request, JoinRequest):
            self._hear_where(request)
        self._tasks.start_soon(self._answer, incoming, header, request)

    def _hear_where(self, request: JoinRequest) -> None:
        link = self._links.get(NodeId(request.node_id))
        if link is not None and request.cluster_id == self._services.cluster_id:
            seen = Sighting(request.directory_id, request.incarnation)
            link.hear_where(seen, peer_address_of(request.endpoints))

    async def _answer(self, incoming: Incoming, header: PeerHeader, request: Message) -> None:
        sockets = self._services.sockets
        try:
            response = await answer_call(
                self._handlers, header.api, incoming.node_id, request, sockets.odd_events
            )
        except ProtocolError as error:
            why = MalformedMessage(f"{header.api.name}: {error}")
            sockets.turn.run(partial(incoming.refuse_input, why))
        else:
            sockets.turn.run(partial(incoming.answer, header, response))

    def incoming_ended(self, incoming: Incoming, end: PeerEnd, reason: str) -> None:
        self.strangers.forget(incoming)
        link = None if incoming.node_id is None else self._links.get(incoming.node_id)
        if link is not None:
            link.incoming_ended(incoming, end, reason)

    def close(self) -> None:
        """Hang up, and be found by nobody any more. Doing it twice is allowed."""
        self._services.is_stopping = True
        self.stop_accepting()
        for scope in self._dialing.values():
            scope.cancel()
        for link in self._links.values():
            link.close(PeerEnd.STOPPING, "this broker stops")
        self.strangers.close()

    def _link(self, node: NodeId) -> Link:
        link = self._links.get(node)
        if link is None:
            link = self._links[node] = Link(node, self._services)
        return link


async def _keep_connected(link: Link, scope: trio.CancelScope) -> None:
    with scope:
        await link.dialer.keep_connected()


async def _keep_renewed(tls: PeerTls) -> None:
    while True:
        await trio.sleep_until(next_look(_RENEWAL_SECONDS))
        tls.renew()


@asynccontextmanager
async def open_peer_network(
    bound: BoundPeerListener,
    own: BrokerMetadata,
    *,
    events: PeerEvents,
    handlers: PeerHandlers,
    reactor: Reactor,
    turn: Turn,
    metrics: PeerMetrics,
    rng: Random,
    frame_bytes_max: int = FRAME_BYTES_MAX,
) -> AsyncIterator[PeerNetwork]:
    """This broker's side of the network, as long as this block lasts and `reactor` runs.

    At first it belongs to no cluster and connects to nobody: see `enter` and `set_peers`.
    """
    # A broker that is cancelled still needs the others, to commit what it has taken.
    async with open_background() as tasks:
        services = PeerServices(
            own=own,
            cluster_id=None,
            sockets=SocketServices(reactor, turn, metrics, OddEvents(logger), logger),
            events=events,
            tasks=tasks,
            rng=rng,
            frame_bytes_max=frame_bytes_max,
            belonging=Belonging(own.node_id),
            tls=bound.tls,
        )
        network = PeerNetwork(services, address=bound.address, handlers=handlers)
        network.stop_accepting = Accepting(bound, network.strangers.begin, reactor, tasks).close
        if bound.tls is not None:
            tasks.start_soon(_keep_renewed, bound.tls)
        try:
            yield network
        finally:
            turn.run(network.close)
