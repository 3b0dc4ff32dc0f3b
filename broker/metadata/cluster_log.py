"""The cluster's metadata on one broker: commands go to the leader's log, and come back applied.

Every broker applies the same commands in the same order. Only the leader of the group appends, one
batch at a time: each command is decided on the state that the one before it has led to, or in a
batch of many will lead to. Who proposed it is answered once it is committed *and* applied here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio

from tidemark.partitions.state_machines.cluster import Applied, C, ClusterState, drafted
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.state_machines.cluster_machine import (
    CLUSTER_ID,
    ClusterMachine,
    Outcome,
    command_batch,
)
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.state_machines.cluster_versions import version_of
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.versions import FIRST_VERSION
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, Epoch, NodeId, Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.turn import Turn
    from tidemark.broker.node import Clock

K = TypeVar("K", bound=Command)

CLUSTER_KEY: Final = PartitionKey(CLUSTER_ID, 0)
"""The group whose log is the cluster's metadata."""


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

    @property
    def epoch(self) -> Epoch: ...

    @property
    def failure(self) -> str | None:
        """Why it takes no part any more."""
        ...

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
        older_than: Callable[[int], Sequence[NodeId]],
    ) -> None:
        """`older_than` says which brokers are there that do not speak a version of the protocol
        between brokers, nor a newer one."""
        self._node_id = node_id
        self._group = group
        self._turn = turn
        self._machine = machine
        self._clock = clock
        self._older_than = older_than
        self._proposing = trio.Lock()
        self._waiters: dict[Offset, _Waiter] = {}
        self._appended_end, self._appended_epoch = NO_OFFSET, NO_EPOCH
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

    @property
    def why_leaderless(self) -> str:
        """Why this broker knows of no leader, in a sentence."""
        if self._group.failure is not None:
            return f"this broker goes by old metadata: {self._group.failure}"
        return "no broker leads the cluster's metadata: a majority of its voters is needed"

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
        self._wake()

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        """Carry out what `decide` makes of the state as it is when its turn comes.

        Raises what `decide` raises, the `RequestError` that the command is refused with,
        UNSUPPORTED_VERSION where brokers of an older release are there that could not read it, and
        NOT_CONTROLLER where this broker does not lead, or ceases to: then the command may still be
        carried out, as it may when this is cancelled.
        """
        async with self._proposing:
            await self._wait_given_up()
            # First: what is decided on an old state would be refused for what is so no more.
            self._check_leads()
            command = self._readable(decide(self.state))
            self.state.check(command)
            (result,) = await self._append([command])
        if isinstance(result, RequestError):
            raise result
        return result

    async def propose_topics(
        self, decisions: Sequence[Callable[[ClusterState], C]]
    ) -> list[TopicMetadata | RequestError]:
        """Create, extend or delete topics, all in one batch, each decided on the state that those
        before it lead to.

        What each came to, or was refused with; in all else as `propose`.
        """
        async with self._proposing:
            await self._wait_given_up()
            self._check_leads()
            decided = drafted(self.state, [self._reads(decide) for decide in decisions])
            commands = [each for each in decided if not isinstance(each, RequestError)]
            results = iter(await self._append(commands) if commands else ())
        return [each if isinstance(each, RequestError) else _topic(results) for each in decided]

    def _reads(self, decide: Callable[[ClusterState], C]) -> Callable[[ClusterState], C]:
        return lambda state: self._readable(decide(state))

    def _readable(self, command: K) -> K:
        """The command, if all brokers that are there can read it."""
        version = version_of(command)
        if version > FIRST_VERSION and (older := self._older_than(version)):
            raise _not_readable(older)
        return command

    async def _wait_given_up(self) -> None:
        """Until all is applied that was appended here, also for somebody who has gone since. What
        is decided then holds when it is applied: nobody else appends, and one at a time does here.
        """
        while self._is_behind:
            await self._applied_more.wait()

    @property
    def _is_behind(self) -> bool:
        # What an earlier epoch has left in the log was applied before this one serves.
        return (
            self._group.is_serving
            and self._group.epoch == self._appended_epoch
            and self._machine.applied < self._appended_end
        )

    def _check_leads(self) -> None:
        if not self._group.is_serving:
            leader = self._group.leader
            raise RequestError(
                ErrorCode.NOT_CONTROLLER,
                self.why_leaderless
                if leader is None
                else f"broker {leader} leads the cluster's metadata",
            )

    async def _append(self, commands: Sequence[Command]) -> list[Applied | RequestError]:
        """What became of each, once all are applied; one after the other, in one batch."""
        batch = bytes(command_batch(*commands, now_ms=self._clock.now_ms()))
        waiters = [_Waiter() for _ in commands]
        # In one turn, at whose end the commands may be applied already.
        self._turn.run(lambda: self._append_for(waiters, batch))
        try:
            for waiter in waiters:
                await waiter.done.wait()
        finally:
            for waiter in waiters:
                self._waiters.pop(waiter.end_offset, None)
        return [waiter.result for waiter in waiters]

    def _append_for(self, waiters: Sequence[_Waiter], batch: bytes) -> None:
        appended = self._group.append_own(batch)
        self._appended_end, self._appended_epoch = appended.end_offset, appended.epoch
        for left, waiter in enumerate(reversed(waiters)):
            waiter.end_offset = Offset(appended.end_offset - left)
            waiter.epoch = appended.epoch
            self._waiters[waiter.end_offset] = waiter

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
        self._wake()

    def _wake(self) -> None:
        self._applied_more.set()
        self._applied_more = trio.Event()

    def _settle(self, offset: Offset, result: Applied | RequestError) -> None:
        waiter = self._waiters.pop(offset)
        waiter.result = result
        waiter.done.set()


def _topic(results: Iterator[Applied | RequestError]) -> TopicMetadata | RequestError:
    result = next(results)
    assert isinstance(result, TopicMetadata | RequestError)
    return result


def _lost_leadership() -> RequestError:
    return RequestError(
        ErrorCode.NOT_CONTROLLER,
        "another broker leads the cluster's metadata now; whether the change was made, only "
        "looking will tell",
    )


def _not_readable(older: Sequence[NodeId]) -> RequestError:
    who, runs = ("brokers", "run") if older[1:] else ("broker", "runs")
    return RequestError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{who} {', '.join(map(str, older))} {runs} an older release, which cannot follow this "
        "change of the cluster's metadata: upgrade all brokers first",
    )
