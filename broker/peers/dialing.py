"""The connection that this broker opens to another one, again and again.

Where TLS fails and need not be, it is tried at once without; where a connection is missed, at once
again; else after a while, or as soon as there is a reason to.
"""

from __future__ import annotations

import logging
import ssl
from functools import partial
from random import Random
from typing import Final, Protocol

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.connecting import connect
from tidemark.broker.peers.hello import (
    HELLO_SECONDS,
    Refusal,
    Refused,
    Sighting,
    hello_to,
    judge_answer,
)
from tidemark.broker.peers.outgoing import Outgoing
from tidemark.broker.peers.services import PeerServices
from tidemark.broker.peers.whereabouts import Whereabouts
from tidemark.protocol.messages.peer.hello import HelloResponse
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

_FIRST_SECONDS: Final = 0.02
_LAST_SECONDS: Final = 1.0
# A connection that has lasted so long was in order: its end is not the next one's fault.
_STABLE_SECONDS: Final = 1.0


class Backoff:
    """How long to wait before the next attempt: doubling, and never twice the same, so that
    brokers that lost each other together do not stay in step."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._seconds = _FIRST_SECONDS

    def reset(self) -> None:
        self._seconds = _FIRST_SECONDS

    def next_seconds(self) -> float:
        seconds, self._seconds = self._seconds, min(2 * self._seconds, _LAST_SECONDS)
        return seconds * self._rng.uniform(0.5, 1)


class DialerOwner(Protocol):
    """Who wants the connection. All of it is called inside a turn."""

    is_cut: bool
    """For tests: nobody is to be spoken to."""

    @property
    def is_broken(self) -> bool:
        """Whether it is missed: one that had lasted is then opened again without delay."""

    def connected(self, seen: Sighting, version: int) -> None:
        """It has taken the connection, and is who it should be."""

    def not_connected(self, why: str) -> None:
        """Nobody can be reached, or whoever is there refuses, or is somebody else."""

    def disconnected(self, reason: str, *, tells_why: bool) -> None:
        """The connection has ended. `tells_why`: before it was taken, and that is why there is
        none."""


class Dialer:
    """At most one connection at a time. Everything but its task is called inside a turn."""

    __slots__ = ("_last_refusal", "_node", "_owner", "_services", "_wake", "_where", "connection")

    def __init__(
        self, node: NodeId, where: Whereabouts, owner: DialerOwner, services: PeerServices
    ) -> None:
        self.connection: Outgoing | None = None
        """Taken or not."""
        self._node = node
        self._where = where
        self._owner = owner
        self._services = services
        self._wake = trio.Event()
        self._last_refusal: str | None = None

    def hurry(self) -> None:
        """There is a reason to try again now."""
        self._wake.set()

    async def keep_connected(self) -> None:
        """The task. For ever."""
        backoff = Backoff(self._services.rng)
        while True:
            self._wake = trio.Event()
            started = trio.current_time()
            await self._connect_once()
            if trio.current_time() - started > _STABLE_SECONDS:
                backoff.reset()
                if self._owner.is_broken:
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
            connected = await connect(self._where.addresses)
        except OSError as error:
            self._not_reached(error)
            return None
        if self._owner.is_cut:
            connected.close()
            return None
        hello = hello_to(self._node, services.own, services.cluster_id)
        try:
            outgoing = self.connection = Outgoing(
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
        logger.debug("broker %d cannot be reached: %s", self._node, error)
        why = f"it cannot be reached: {error}"
        self._services.sockets.turn.run(partial(self._owner.not_connected, why))

    def _close_in_turn(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None:
        self._services.sockets.turn.run(partial(outgoing.close, end, reason))

    def answered(self, outgoing: Outgoing, response: HelloResponse) -> None:
        refused = judge_answer(self._node, response, self._where.known)
        if refused is not None:
            self._log_refusal(outgoing, refused)
            outgoing.close(PeerEnd.REFUSED, refused.reason)
            self._owner.not_connected(refused.reason)
            return
        self._last_refusal = None
        outgoing.accept(response.version, response.incarnation)
        if self._is_second_best(outgoing):
            logger.warning("broker %d is spoken to without TLS, in which it failed", self._node)
        seen = Sighting(response.directory_id, response.incarnation)
        self._owner.connected(seen, response.version)
        self._services.belonging.greeted(self._node, response.reason)

    def outgoing_ended(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None:
        if self.connection is outgoing:
            self.connection = None
            tells_why = outgoing.incarnation is None and not self._is_second_best(outgoing)
            self._owner.disconnected(reason, tells_why=tells_why)

    def _is_second_best(self, outgoing: Outgoing) -> bool:
        """Whether it was tried only because TLS had failed."""
        return outgoing.is_plain and self._services.tls is not None

    def _log_refusal(self, outgoing: Outgoing, refused: Refused) -> None:
        """Once, and not at every attempt."""
        if refused.reason != self._last_refusal:
            self._last_refusal = refused.reason
            # Whoever starts last finds the others in the middle of it: that is in order.
            level = logging.INFO if refused.refusal is Refusal.NO_CLUSTER_YET else logging.WARNING
            where = outgoing.address
            logger.log(
                level, "no connection to broker %d at %s: %s", self._node, where, refused.reason
            )
