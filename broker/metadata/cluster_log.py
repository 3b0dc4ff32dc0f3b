"""The cluster's metadata on one broker: commands go to the leader's log, and come back applied.

Every broker applies the same commands in the same order. Only the leader of the group appends, one
command at a time: each is decided on the state that the one before it has led to. Who proposed it
is answered once it is committed *and* applied here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol

import trio

from tidemark.partitions.state_machines.cluster import Applied, ClusterState, VersionConflict
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.state_machines.cluster_machine import (
    CLUSTER_ID,
    ClusterMachine,
    Outcome,
    command_batch,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, Epoch, NodeId, Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.turn import Turn
    from tidemark.broker.node import Clock

CLUSTER_KEY: Final = PartitionKey(CLUSTER_ID, 0)
"""The group whose log is the cluster's metadata."""

_ATTEMPTS: Final = 5
"""How often a command is decided anew when one that was given up before has come between."""


class AppendedCommand(Protocol):
    @property
    def end_offset(self) -> Offset: ...
    @property
    def epoch(self) -> Epoch: ...


class ClusterGroup(Protocol):
    """The replica of the group on this broker, as far as the metadata need it."""

    @property
    def is_serving(self) -> bool:
        """Whether it leads, and has applied all that the leaders before it had committed."""
        ...

    @property
    def leader(self) -> NodeId | None: ...

    def append_own(self, batches: bytes) -> AppendedCommand: ...


@dataclass(slots=True)
class _Waiter:
    """Somebody who waits until a command is applied that this broker has appended as leader."""

    end_offset: Offset = NO_OFFSET
    epoch: Epoch = NO_EPOCH
    done: trio.Event = field(default_factory=trio.Event)
    result: Applied | RequestError = None


class ClusterLog:
    """The state, and the way to change it. Used on the loop's thread."""

    def __init__(
        self,
        node_id: NodeId,
        group: ClusterGroup,
        machine: ClusterMachine,
        *,
        turn: Turn,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._group = group
        self._turn = turn
        self._machine = machine
        self._clock = clock
        self._proposing = trio.Lock()
        self._waiters: dict[Offset, _Waiter] = {}
        self._applied_more = trio.Event()
        self._listeners: list[Callable[[Outcome], None]] = []
        self._when_changed: list[Callable[[], None]] = []
        machine.on_applied = self._on_applied

    @property
    def state(self) -> ClusterState:
        return self._machine.state

    @property
    def leads(self) -> bool:
        """Whether commands may be proposed here."""
        return self._group.is_serving

    @property
    def leader(self) -> NodeId | None:
        return self._group.leader

    def listen(self, listener: Callable[[Outcome], None]) -> None:
        """Have `listener` called with each outcome, at once and before whoever waits for it."""
        self._listeners.append(listener)

    def when_changed(self, callback: Callable[[], None]) -> None:
        """Have `callback` called after each command, and when the state is another altogether."""
        self._when_changed.append(callback)

    def leadership_changed(self) -> None:
        """For the shell: answer those who wait for what another broker has to carry out now.

        While nobody leads they wait on. If this broker leads again, in a later epoch, what it has
        appended is still in its log, and will be applied.
        """
        if self._group.leader not in (None, self._node_id):
            for offset in list(self._waiters):
                self._settle(offset, _lost_leadership())

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        """Carry out what `decide` makes of the state; it may be called again on a later one.

        Raises what `decide` raises, the `RequestError` that the command is refused with, and
        NOT_CONTROLLER where this broker does not lead, or ceases to: then the command may still be
        carried out, as it may when this is cancelled.
        """
        async with self._proposing:
            for _ in range(_ATTEMPTS - 1):
                try:
                    return await self._append(decide(self.state))
                except VersionConflict:
                    continue
            return await self._append(decide(self.state))

    async def _append(self, command: Command) -> Applied:
        if not self._group.is_serving:
            raise RequestError(ErrorCode.NOT_CONTROLLER, _names(self._group.leader))
        self.state.check(command)
        batch = command_batch(command, now_ms=self._clock.now_ms())
        waiter = _Waiter()
        # In one turn, at whose end the command may be applied already.
        self._turn.run(lambda: self._append_for(waiter, bytes(batch)))
        try:
            await waiter.done.wait()
        finally:
            self._waiters.pop(waiter.end_offset, None)
        if isinstance(waiter.result, RequestError):
            raise waiter.result
        return waiter.result

    def _append_for(self, waiter: _Waiter, batch: bytes) -> None:
        appended = self._group.append_own(batch)
        waiter.end_offset, waiter.epoch = appended.end_offset, appended.epoch
        self._waiters[appended.end_offset] = waiter

    async def wait_version(self, version: int) -> None:
        """Until the state here is of that version, or a later one."""
        while self.state.version < version:
            await self._applied_more.wait()

    def _on_applied(self, outcome: Outcome) -> None:
        for listener in self._listeners:
            listener(outcome)
        position = outcome.position
        waiter = self._waiters.get(position.offset)
        if waiter is not None:
            is_ours = waiter.epoch == position.epoch
            self._settle(position.offset, outcome.result if is_ours else _lost_leadership())
        self.applied_more()

    def applied_more(self) -> None:
        """Tell those who follow the state, and wake those who wait for a version: commands were
        applied, or a snapshot restored."""
        for callback in self._when_changed:
            callback()
        self._applied_more.set()
        self._applied_more = trio.Event()

    def _settle(self, offset: Offset, result: Applied | RequestError) -> None:
        waiter = self._waiters.pop(offset)
        waiter.result = result
        waiter.done.set()


def _lost_leadership() -> RequestError:
    return RequestError(
        ErrorCode.NOT_CONTROLLER,
        "another broker leads the cluster's metadata now; whether the change was made, only "
        "looking will tell",
    )


def _names(leader: NodeId | None) -> str:
    if leader is None:
        return "no broker leads the cluster's metadata: a majority of its voters is needed"
    return f"broker {leader} leads the cluster's metadata"
