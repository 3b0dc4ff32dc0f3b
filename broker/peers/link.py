"""One other broker: the connection to it, the one from it, and whether it is up.

It is up once both connections are taken and lead to the same life of that broker: then what is said
is heard, and what is heard may be answered. It is down as soon as either ends; the other one stays,
but nothing is read from it until the broker is up again. So whoever is told of messages has been
told before that their sender is up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, Protocol

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.dialing import Backoff, connect
from tidemark.broker.peers.frame_socket import SocketServices
from tidemark.broker.peers.hello import (
    HostPort,
    Peer,
    Refused,
    Sighting,
    hello_to,
    judge_answer,
    peer_address_of,
)
from tidemark.broker.peers.incoming import Incoming
from tidemark.broker.peers.outgoing import Outgoing
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

HELLO_SECONDS: Final = 5.0
"""How long a connection may take until it is known who is there."""
# A connection that has lasted so long was in order: its end is not the next one's fault.
_STABLE_SECONDS: Final = 1.0


class PeerEvents(Protocol):
    """Who is told of the other brokers: always inside a turn. None of it may raise.

    `peer_up` comes before the first message of a broker, and `peer_down` after its last.
    """

    def peer_up(self, node: NodeId, incarnation: int) -> None: ...
    def peer_down(self, node: NodeId) -> None: ...
    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        """What arrived in one frame. Records stay valid for as long as they are held."""


@dataclass(slots=True, kw_only=True)
class LinkServices:
    """What all links of a broker share."""

    own: BrokerMetadata
    cluster_id: str | None
    """`None` until this broker belongs to one."""
    sockets: SocketServices
    events: PeerEvents
    rng: Random
    frame_bytes_max: int
    is_stopping: bool = False
    """Connections end, and nobody is told any more."""


class Link:
    """Invariant: `up` is the incarnation of both connections, or `None`."""

    __slots__ = (
        "_held",
        "_incoming",
        "_last_refusal",
        "_outgoing",
        "_said_address",
        "_seen",
        "_services",
        "_target",
        "_wake",
        "is_cut",
        "node",
        "up",
    )

    def __init__(self, node: NodeId, services: LinkServices) -> None:
        self.node = node
        self.up: int | None = None
        self.is_cut = False
        self._services = services
        self._incoming: Incoming | None = None
        self._outgoing: Outgoing | None = None
        self._seen: Sighting | None = None
        self._target: Peer | None = None  # None for a broker that only comes to us
        # Where it says itself that it is: after a move, newer than what the cluster knows.
        self._said_address: HostPort | None = None
        self._wake = trio.Event()
        self._last_refusal: str | None = None
        self._held: list[Incoming] = []
        services.sockets.metrics.up[node] = False

    @property
    def outgoing(self) -> Outgoing | None:
        """The connection to it, if that has been taken."""
        return self._outgoing if self._outgoing is not None and self._outgoing.is_accepted else None

    @property
    def known(self) -> Sighting | None:
        """Whom a connection must lead to, or come from; `None` for anybody."""
        if (
            self._seen is None
            and self._target is not None
            and self._target.directory_id is not None
        ):
            return Sighting(self._target.directory_id, 0)
        return self._seen

    @property
    def _addresses(self) -> list[HostPort]:
        """Where it may be, the likeliest first."""
        known = [] if self._target is None else [self._target.address]
        said = self._said_address
        return known if said is None else [said, *(each for each in known if not _same(each, said))]

    def send(self, messages: Iterable[PeerMessage]) -> None:
        """They are lost if the broker is not up."""
        if self.up is not None and not self.is_cut and self._outgoing is not None:
            self._outgoing.send(messages)

    def aim(self, target: Peer) -> None:
        """Where the cluster has it from now on, and with which data directory."""
        before, self._target = self._target, target
        if before is not None and not _same(before.address, target.address):
            self._said_address = None
            self._wake.set()
        if self._seen is not None and target.directory_id not in (None, self._seen.directory_id):
            self._seen = None
            self.close(PeerEnd.REPLACED, "it has a new data directory")

    def take_in(self, incoming: Incoming, hello: HelloRequest) -> None:
        """It has connected to us, and is who it should be. There is one such connection at most."""
        incoming.accept(
            self.node, hello.incarnation, frame_bytes_max=self._services.frame_bytes_max
        )
        if self.is_cut:
            incoming.freeze()
            self._held.append(incoming)
            return
        self._see(Sighting(hello.directory_id, hello.incarnation))
        self._said_address = peer_address_of(hello.endpoints)
        if self._incoming is not None:
            self._incoming.close(PeerEnd.REPLACED, "it has connected again")
        self._incoming = incoming
        self._wake.set()
        self._settle("")

    def answered(self, outgoing: Outgoing, response: HelloResponse) -> None:
        refused = judge_answer(self.node, response, self.known)
        if refused is not None:
            self._note_refusal(outgoing, refused)
            outgoing.close(PeerEnd.REFUSED, refused.reason)
            return
        self._last_refusal = None
        outgoing.accept(response.version, response.incarnation)
        self._see(Sighting(response.directory_id, response.incarnation))
        self._settle("")

    def _note_refusal(self, outgoing: Outgoing, refused: Refused) -> None:
        """Once, and not at every attempt."""
        if refused.reason != self._last_refusal:
            self._last_refusal = refused.reason
            logger.warning(
                "no connection to broker %d at %s: %s", self.node, outgoing.address, refused.reason
            )

    def _see(self, seen: Sighting) -> None:
        """Connections to an earlier life of it are over."""
        self._seen = seen
        for connection in (self._incoming, self._outgoing):
            if (
                connection is not None
                and connection.incarnation is not None
                and connection.incarnation < seen.incarnation
            ):
                connection.close(PeerEnd.REPLACED, "it has started again")

    def outgoing_ended(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None:
        if self._outgoing is outgoing:
            self._outgoing = None
            self._settle(reason)

    def incoming_ended(self, incoming: Incoming, end: PeerEnd, reason: str) -> None:
        if self._incoming is incoming:
            self._incoming = None
            self._settle(reason)

    def _settle(self, reason: str) -> None:
        """Look again whether it is up, and say so if that has changed."""
        incoming, outgoing = self._incoming, self.outgoing
        up = None
        if incoming is not None and outgoing is not None:
            # What led to an earlier life was closed when this one was seen.
            assert incoming.incarnation == outgoing.incarnation
            up = outgoing.incarnation
        if up == self.up or self._services.is_stopping:
            return
        if self.up is not None:
            self._went_down(reason)
        if up is not None and incoming is not None:
            self._went_up(up, incoming)

    def _went_down(self, reason: str) -> None:
        self.up = None
        self._services.sockets.metrics.up[self.node] = False
        logger.warning("broker %d is down: %s", self.node, reason)
        if self._incoming is not None:
            self._incoming.pause()
        self._services.events.peer_down(self.node)

    def _went_up(self, incarnation: int, incoming: Incoming) -> None:
        self.up = incarnation
        self._services.sockets.metrics.up[self.node] = True
        logger.info("broker %d is up, at %s", self.node, incoming.address)
        self._services.events.peer_up(self.node, incarnation)
        incoming.resume()

    async def keep_connected(self) -> None:
        """The task that opens the connection to it, again and again. For ever."""
        backoff = Backoff(self._services.rng)
        while True:
            self._wake = trio.Event()
            started = trio.current_time()
            await self._connect_once()
            if trio.current_time() - started > _STABLE_SECONDS:
                backoff.reset()
            with trio.move_on_after(backoff.next_seconds()):
                await self._wake.wait()

    async def _connect_once(self) -> None:
        """Connect, and stay until that has ended."""
        services = self._services
        assert services.cluster_id is not None
        services.sockets.metrics.attempts.inc()
        try:
            connected = await connect(self._addresses)
        except OSError as error:
            logger.debug("broker %d cannot be reached: %s", self.node, error)
            return
        if self.is_cut:
            connected.close()
            return
        hello = hello_to(self.node, services.own, services.cluster_id)
        outgoing = self._outgoing = Outgoing(
            connected, hello, self, services.sockets, frame_bytes_max=services.frame_bytes_max
        )
        try:
            with trio.move_on_after(HELLO_SECONDS):
                await outgoing.settled.wait()
            if outgoing.incarnation is None:
                self._close_in_turn(outgoing, PeerEnd.NO_HELLO, "it has not answered the Hello")
            await outgoing.ended_event.wait()
        finally:
            self._close_in_turn(outgoing, PeerEnd.LEFT_OUT, "it does not belong to the cluster")

    def _close_in_turn(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None:
        self._services.sockets.turn.run(partial(outgoing.close, end, reason))

    def cut(self) -> None:
        """For tests: nothing passes, as if a cable were cut, and nobody is told."""
        self.is_cut = True
        for connection in (self._incoming, self._outgoing):
            if connection is not None:
                connection.freeze()

    def heal(self) -> None:
        self.is_cut = False
        self.close(PeerEnd.BY_PEER, "it was cut off")
        self._wake.set()

    def close(self, end: PeerEnd, reason: str) -> None:
        held, self._held = self._held, []
        for connection in (self._incoming, self._outgoing, *held):
            if connection is not None:
                connection.close(end, reason)


def _same(one: HostPort, other: HostPort) -> bool:
    return (one.host, one.port) == (other.host, other.port)
