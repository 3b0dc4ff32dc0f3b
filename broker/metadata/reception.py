"""Being known again: for a broker of the cluster whose start finds no leader that it could register
with.

The others connect only to brokers that are in the metadata. Who was decommissioned while it was
away is not in them any more, and nobody connects to it, though it reaches everybody. So it asks by
address, as a new broker does; once its registration is applied the others connect, and who they
are is in the answer: all whom it knew may have been replaced.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import trio

from tidemark.broker.config import Address
from tidemark.protocol.errors import ErrorCode, ProtocolError, RequestError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.types import NodeId

CALL_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
"""So long a start waits to be connected, as it is with most of them, before it asks around."""
_AGAIN_SECONDS: Final = 30.0
"""The same once it has been taken in: each time is a record in the metadata's log."""

CallAddress: TypeAlias = Callable[[Address, JoinRequest], Awaitable[JoinResponse]]


class Connections(Protocol):
    """To the other brokers."""

    @property
    def up(self) -> Mapping[NodeId, int]: ...

    def trouble_with(self, node: NodeId) -> str: ...


class Reception:
    """Asks one address after the other, once it has had patience. Of one start."""

    def __init__(
        self,
        own: Address,
        addresses: Callable[[], Sequence[Address]],
        ask: CallAddress,
        welcomed: Callable[[JoinResponse], None],
    ) -> None:
        """`addresses` are those where others may be, `own` among them or not; `welcomed` is told of
        the answer of one that has taken this broker in."""
        self._own = own
        self._addresses = addresses
        self._ask = ask
        self._welcomed = welcomed
        self._turns = itertools.count()
        self._begins = trio.current_time() + PATIENCE_SECONDS

    async def ask(self, request: JoinRequest) -> JoinResponse | None:
        """What the next one answers; `None` if it is too early, or nobody is there.

        Nobody has refused for good who only speaks another version: it may be the next one to be
        upgraded. Raises `RequestError` for that.
        """
        others = [each for each in dict.fromkeys(self._addresses()) if each != self._own]
        if not others or trio.current_time() < self._begins:
            return None
        answered = None
        with trio.move_on_after(CALL_SECONDS):
            try:
                answered = await self._ask(others[next(self._turns) % len(others)], request)
            except (OSError, ProtocolError, RequestError):
                return None
        if answered is not None and answered.error_code == ErrorCode.INVALID_REQUEST:
            raise RequestError(ErrorCode.NOT_CONTROLLER, answered.error_message)
        if answered is not None and answered.error_code == ErrorCode.NONE:
            self._begins = trio.current_time() + _AGAIN_SECONDS
            self._welcomed(answered)
        return answered


def awaited(own: NodeId, voters: Sequence[NodeId], connections: Connections) -> str:
    """Why nobody leads the metadata: which voters are missing, and why, in a sentence."""
    needed = len(voters) // 2 + 1
    there = [node for node in voters if node == own or node in connections.up]
    missing = [node for node in voters if node not in there]
    if len(there) >= needed or not missing:
        return "no broker that leads the cluster's metadata is connected"
    why = "; ".join(f"broker {node}: {connections.trouble_with(node)}" for node in missing)
    wanted = f"{needed} of the brokers {_listed(voters)}" if voters[1:] else f"broker {voters[0]}"
    return (
        f"the cluster's metadata need {wanted}, and "
        f"{_listed(there) if there else 'none'} {'is' if len(there) < 2 else 'are'} there ({why})"
    )


def _listed(nodes: Sequence[NodeId]) -> str:
    *most, last = map(str, nodes)
    return f"{', '.join(most)} and {last}" if most else last
