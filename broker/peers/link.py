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
import ssl
from collections.abc import Iterable, Sequence
from functools import partial
from random import Random
from typing import Final, Protocol

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.belonging import Belonging
from tidemark.broker.peers.dialing import Backoff, connect
from tidemark.broker.peers.encoding import SharedFrames
from tidemark.broker.peers.frame_socket import SocketServices
from tidemark.broker.peers.hello import (
    HostPort,
    Peer,
    Refusal,
    Refused,
    Sighting,
    hello_to,
    judge_answer,
    judge_sighting,
    peer_address_of,
)
from tidemark.broker.peers.incoming import Incoming
from tidemark.broker.peers.outgoing import Outgoing
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

logger = logging.getLogger(__name__)

HELLO_SECONDS: Final = 5.0
"""How long a connection may take until it is known who is there."""
MEND_SECONDS: Final = 0.2
"""How long a link may be broken before the other broker is taken for down."""
# A connection that has lasted so long was in order: its end is not the next one's fault.
_STABLE_SECONDS: Final = 1.0


class PeerEvents(Protocol):
    """Who is told of the other brokers: always inside a turn. None of it may raise.

    `peer_up` comes before the first message of a broker, and `peer_down` after its last.
    """

    def peer_up(self, node: NodeId, incarnation: int) -> None:
        """Also of one that is up: its connections are new, what was on its way may be lost."""

    def peer_down(self, node: NodeId) -> None: ...
    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        """What arrived in one frame. Records stay valid for as long as they are held, but for
        those of `SteadyAppends`: only until this returns."""


@dataclass(slots=True, kw_only=True)
class LinkServices:
    """What all links of a broker share."""

    own: BrokerMetadata
    cluster_id: str | None
    """`None` until this broker belongs to one."""
    sockets: SocketServices
    events: PeerEvents
    tasks: trio.Nursery
    rng: Random
    frame_bytes_max: int
    belonging: Belonging
    tls: PeerTls | None
    """`None` where brokers speak without it."""
    is_stopping: bool = False
    """Connections end, and nobody is told any more."""


class Link:
    """Invariant: `up` is the incarnation of the connections that there are, or `None`."""

    __slots__ = (
        "_broken",
        "_held",
        "_incoming",
        "_last_refusal",
        "_mended",
        "_outgoing",
        "_said_address",
        "_seen",
        "_services",
        "_target",
        "_wake",
        "is_cut",
        "node",
        "trouble",
        "up",
    )

    def __init__(self, node: NodeId, services: LinkServices) -> None:
        self.node = node
        self.up: int | None = None
        self.trouble = "it is not connected yet"
        """Why it is not up, as far as that is known."""
        self.is_cut = False
        self._services = services
        self._incoming: Incoming | None = None
        self._outgoing: Outgoing | None = None
        self._seen: Sighting | None = None
        self._target: Peer | None = None  # None for a broker that only comes to us
        # Where it says itself that it is: after a move, newer than what the cluster knows.
        self._said_address: HostPort | None = None
        self._wake = trio.Event()
        # Why it is broken, while it is up and a connection is missing.
        self._broken: str | None = None
        self._mended = trio.Event()  # or down
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

    def _is_second_best(self, outgoing: Outgoing) -> bool:
        """Whether it was tried only because TLS had failed."""
        return outgoing.is_plain and self._services.tls is not None

    @property
    def _addresses(self) -> list[HostPort]:
        """Where it may be, the likeliest first."""
        known = [] if self._target is None else [self._target.address]
        said = self._said_address
        return known if said is None else [said, *(each for each in known if not _same(each, said))]

    def send(self, messages: Iterable[PeerMessage], shared: SharedFrames) -> None:
        """They are lost if the broker is not up, or cannot be spoken to now. `shared` is what other
        brokers are told in the same turn."""
        outgoing = self.outgoing
        if self.up is not None and not self.is_cut and outgoing is not None:
            outgoing.send(messages, shared)

    def aim(self, target: Peer) -> None:
        """Where the cluster has it from now on, and with which data directory."""
        before, self._target = self._target, target
        if before is not None and not _same(before.address, target.address):
            self._said_address = None
            self._wake.set()
        if self._seen is not None and target.directory_id not in (None, self._seen.directory_id):
            self._seen = None
            self.leave(PeerEnd.REPLACED, "it has a new data directory")

    def hear_where(self, seen: Sighting, address: HostPort | None) -> None:
        """It asks to be known, at whatever address it has found, and says where it is.

        It is believed if it has the directory that this broker is known by. So brokers that have
        all moved find each other, as soon as one of them is told where another one is.
        """
        known = self.known
        if self.up is not None or known is None or address is None:
            return
        if judge_sighting(self.node, seen, known) is None:
            self._said_address = address
            self._wake.set()

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
            self._give_up(refused.reason)
            return
        self._last_refusal = None
        outgoing.accept(response.version, response.incarnation)
        if self._is_second_best(outgoing):
            logger.warning("broker %d is spoken to without TLS, in which it failed", self.node)
        self._see(Sighting(response.directory_id, response.incarnation))
        self._settle("")
        self._services.belonging.greeted(self.node, response.reason)

    def _note_refusal(self, outgoing: Outgoing, refused: Refused) -> None:
        """Once, and not at every attempt."""
        self.trouble = refused.reason
        if refused.reason != self._last_refusal:
            self._last_refusal = refused.reason
            # Whoever starts last finds the others in the middle of it: that is in order.
            level = logging.INFO if refused.refusal is Refusal.NO_CLUSTER_YET else logging.WARNING
            where = outgoing.address
            logger.log(
                level, "no connection to broker %d at %s: %s", self.node, where, refused.reason
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
        if self.up is not None and self.up < seen.incarnation:
            self._went_down("it has started again")

    def outgoing_ended(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None:
        if self._outgoing is outgoing:
            self._outgoing = None
            if outgoing.incarnation is None and not self._is_second_best(outgoing):
                self.trouble = reason
            self._settle(reason)

    def incoming_ended(self, incoming: Incoming, end: PeerEnd, reason: str) -> None:
        if self._incoming is incoming:
            self._incoming = None
            self._settle(reason)

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
            self._give_up_in_turn("its connections do not come back")

    def _give_up_in_turn(self, why: str) -> None:
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

    async def keep_connected(self) -> None:
        """The task that opens the connection to it, again and again. For ever."""
        backoff = Backoff(self._services.rng)
        while True:
            self._wake = trio.Event()
            started = trio.current_time()
            await self._connect_once()
            if trio.current_time() - started > _STABLE_SECONDS:
                backoff.reset()
                if self._broken is not None:
                    continue
            with trio.move_on_after(backoff.next_seconds()):
                await self._wake.wait()

    async def _connect_once(self) -> None:
        """Connect, and stay until that has ended. Where TLS fails and need not be, at once without
        it: a broken link has to be mended soon."""
        tls = self._services.tls
        if tls is None:
            await self._dial(None)
            return
        end = await self._dial(tls.value.dialing)
        if end is PeerEnd.FAILED_TLS and not tls.value.is_required:
            await self._dial(None)

    async def _dial(self, tls: ssl.SSLContext | None) -> PeerEnd | None:
        """Why what came about has ended; `None` if nothing did, or the broker had taken it."""
        services = self._services
        assert services.cluster_id is not None
        services.sockets.metrics.attempts.inc()
        try:
            connected = await connect(self._addresses)
        except OSError as error:
            self._not_reached(error)
            return None
        if self.is_cut:
            connected.close()
            return None
        hello = hello_to(self.node, services.own, services.cluster_id)
        try:
            outgoing = self._outgoing = Outgoing(
                connected,
                hello,
                self,
                services.sockets,
                frame_bytes_max=services.frame_bytes_max,
                tls=tls,
            )
        except OSError as error:  # there was no memory to watch another
            connected.close()
            self._not_reached(error)
            return None
        try:
            with trio.move_on_after(HELLO_SECONDS):
                await outgoing.settled.wait()
            if outgoing.incarnation is None:
                self._close_in_turn(outgoing, PeerEnd.NO_HELLO, "it has not answered the Hello")
            await outgoing.ended_event.wait()
        finally:
            self._close_in_turn(outgoing, PeerEnd.LEFT_OUT, "it does not belong to the cluster")
        return outgoing.end if outgoing.incarnation is None else None

    def _not_reached(self, error: OSError) -> None:
        logger.debug("broker %d cannot be reached: %s", self.node, error)
        self.trouble = f"it cannot be reached: {error}"
        self._give_up_in_turn(f"it cannot be reached: {error}")

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

    def leave(self, end: PeerEnd, reason: str) -> None:
        """It is down, and its connections are closed."""
        if self.up is not None and not self._services.is_stopping:
            self._went_down(reason)
        self._services.belonging.left(self.node)
        self.close(end, reason)

    def close(self, end: PeerEnd, reason: str) -> None:
        held, self._held = self._held, []
        for connection in (self._incoming, self._outgoing, *held):
            if connection is not None:
                connection.close(end, reason)


def _same(one: HostPort, other: HostPort) -> bool:
    return (one.host, one.port) == (other.host, other.port)
