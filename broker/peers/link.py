"""One other broker: the connection to it, the one from it, and whether it is up.

It is up once both connections are taken and lead to the same life of that broker: then what is said
is heard, and what is heard may be answered. As soon as either ends the link is broken; the other
one stays, but nothing is read from it until both are there again. So whoever is told of messages
has been told before that their sender is up.

A broker whose process has ended is to be taken for down at once, and one that has only lost a
connection not at all: a thousand groups would elect new leaders for nothing. What tells the two
apart is to connect again, which is done without delay:

1. nobody listens there, or nobody can be reached: it is down;
2. another life of it answers, or refuses us: it is down;
3. both connections are there again: it has been up all the time, but what was on its way is lost;
4. none of that happens within `MEND_SECONDS`: it is down.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.dialing import Dialer
from tidemark.broker.peers.encoding import SharedFrames
from tidemark.broker.peers.hello import HostPort, Peer, Sighting, peer_address_of
from tidemark.broker.peers.incoming import Incoming
from tidemark.broker.peers.outgoing import Outgoing
from tidemark.broker.peers.services import PeerServices
from tidemark.broker.peers.whereabouts import Whereabouts
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.protocol.messages.peer.hello import HelloRequest
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

MEND_SECONDS: Final = 0.2
"""How long a link may be broken before the other broker is taken for down."""


class Link:
    """Invariant: `up` is the incarnation of the connections that there are, or `None`."""

    __slots__ = (
        "_broken",
        "_held",
        "_incoming",
        "_mended",
        "_services",
        "dialer",
        "is_cut",
        "node",
        "trouble",
        "up",
        "version",
        "where",
    )

    def __init__(self, node: NodeId, services: PeerServices) -> None:
        self.node = node
        self.up: int | None = None
        self.trouble = "it is not connected yet"
        """Why it is not up, as far as that is known."""
        self.is_cut = False
        self.version: int | None = None
        """The newest that both speak, as the last connection to it said."""
        self.where = Whereabouts(node)
        self.dialer = Dialer(node, self.where, self, services)
        self._services = services
        self._incoming: Incoming | None = None
        # Why it is broken, while it is up and a connection is missing.
        self._broken: str | None = None
        self._mended = trio.Event()  # or down
        self._held: list[Incoming] = []
        services.sockets.metrics.up[node] = False

    @property
    def outgoing(self) -> Outgoing | None:
        """The connection to it, if that has been taken."""
        connection = self.dialer.connection
        return connection if connection is not None and connection.is_accepted else None

    @property
    def is_broken(self) -> bool:
        """Whether it is up, and a connection is missing."""
        return self._broken is not None

    def send(self, messages: Iterable[PeerMessage], shared: SharedFrames) -> None:
        """They are lost if the broker is not up, or cannot be spoken to now. `shared` is what other
        brokers are told in the same turn."""
        outgoing = self.outgoing
        if self.up is not None and not self.is_cut and outgoing is not None:
            outgoing.send(messages, shared)

    def aim(self, target: Peer) -> None:
        """Where the cluster has it from now on, and with which data directory."""
        if self.where.aim(target):
            self.dialer.hurry()
        if self.where.forget_replaced():
            self.leave(PeerEnd.REPLACED, "it has a new data directory")

    def hear_where(self, seen: Sighting, address: HostPort | None) -> None:
        """It asks to be known, at whatever address it has found, and says where it is.

        It is believed if it has the directory that this broker is known by. So brokers that have
        all moved find each other, as soon as one of them is told where another one is.
        """
        if self.up is None and address is not None and self.where.is_known_as(seen):
            self.where.said_address = address
            self.dialer.hurry()

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
        self.where.said_address = peer_address_of(hello.endpoints)
        if self._incoming is not None:
            self._incoming.close(PeerEnd.REPLACED, "it has connected again")
        self._incoming = incoming
        self.dialer.hurry()
        self._settle("")

    def incoming_ended(self, incoming: Incoming, end: PeerEnd, reason: str) -> None:
        if self._incoming is incoming:
            self._incoming = None
            self._settle(reason)

    def connected(self, seen: Sighting, version: int) -> None:
        self._see(seen)
        self.version = version
        self._settle("")

    def not_connected(self, why: str) -> None:
        self.trouble = why
        self._give_up(why)

    def disconnected(self, reason: str, *, tells_why: bool) -> None:
        if tells_why:
            self.trouble = reason
        self._settle(reason)

    def _see(self, seen: Sighting) -> None:
        """Connections to an earlier life of it are over."""
        self.where.seen = seen
        for connection in self._connections():
            incarnation = connection.incarnation
            if incarnation is not None and incarnation < seen.incarnation:
                connection.close(PeerEnd.REPLACED, "it has started again")
        if self.up is not None and self.up < seen.incarnation:
            self._went_down("it has started again")

    def _settle(self, reason: str) -> None:
        """Look again whether both connections are there, and say so if that has changed."""
        incoming, outgoing = self._incoming, self.outgoing
        if self._services.is_stopping:
            return
        if incoming is None or outgoing is None:
            if outgoing is not None:
                self.trouble = "it does not connect to this broker"
            if self.up is not None and self._broken is None:
                self._break(reason)
            return
        # What led to an earlier life was closed when this one was seen.
        assert incoming.incarnation == outgoing.incarnation
        assert self.up in (None, incoming.incarnation)
        if self.up is None or self._broken is not None:
            self._went_up(incoming)

    def _break(self, reason: str) -> None:
        logger.debug("a connection with broker %d is lost: %s", self.node, reason)
        self._broken, self._mended = reason, trio.Event()
        if self._incoming is not None:
            self._incoming.pause()
        self._services.tasks.start_soon(self._wait_mended, self._mended)

    async def _wait_mended(self, mended: trio.Event) -> None:
        with trio.move_on_after(MEND_SECONDS):
            await mended.wait()
        if not mended.is_set():
            why = "its connections do not come back"
            self._services.sockets.turn.run(partial(self._give_up, why))

    def _give_up(self, why: str) -> None:
        """If the link is broken it stays so."""
        if self._broken is not None and not self._services.is_stopping:
            self._went_down(f"{self._broken}; {why}")

    def _went_down(self, reason: str) -> None:
        self.up = self._broken = None
        self.trouble = reason
        self._mended.set()
        self._services.sockets.metrics.up[self.node] = False
        logger.warning("broker %d is down: %s", self.node, reason)
        self._services.belonging.went_down(self.node)
        if self._incoming is not None:
            self._incoming.pause()
        self._services.events.peer_down(self.node)

    def _went_up(self, incoming: Incoming) -> None:
        if self._broken is None:
            logger.info("broker %d is up, at %s", self.node, incoming.address)
        else:
            logger.info("connected again with broker %d after: %s", self.node, self._broken)
        self.up, self._broken = incoming.incarnation, None
        self._mended.set()
        self._services.sockets.metrics.up[self.node] = True
        self._services.belonging.went_up(self.node)
        self._services.events.peer_up(self.node, self.up)
        incoming.resume()

    def cut(self) -> None:
        """For tests: nothing passes, as if a cable were cut, and nobody is told."""
        self.is_cut = True
        for connection in self._connections():
            connection.freeze()

    def heal(self) -> None:
        self.is_cut = False
        self.close(PeerEnd.BY_PEER, "it was cut off")
        self.dialer.hurry()

    def leave(self, end: PeerEnd, reason: str) -> None:
        """It is down, and its connections are closed."""
        if self.up is not None and not self._services.is_stopping:
            self._went_down(reason)
        self._services.belonging.left(self.node)
        self.close(end, reason)

    def close(self, end: PeerEnd, reason: str) -> None:
        held, self._held = self._held, []
        for connection in (*self._connections(), *held):
            connection.close(end, reason)

    def _connections(self) -> list[Incoming | Outgoing]:
        """Those that there are, taken or not."""
        both = (self._incoming, self.dialer.connection)
        return [connection for connection in both if connection is not None]
