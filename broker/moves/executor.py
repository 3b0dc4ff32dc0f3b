"""Carrying out the wishes about the partitions that this broker leads, and saying what became of
them.

Nobody tells a leader to go: it finds in the metadata that it is wished elsewhere, and does it by
itself (`partitions/replication/moves.py`). Who takes its place before that is done finds the same
wish. A wish is struck by its outcome; until that is in the metadata, it is said again and again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import trio

from tidemark.broker.metadata.applied import Metadata
from tidemark.broker.metrics.move_counts import MoveMetrics
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock
from tidemark.partitions.replication.ended_move import EndedMove, Ending
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.moves import Moves, Phase
from tidemark.partitions.state_machines.cluster_values import (
    LeaderMove,
    MoveOutcome,
    PartitionId,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

LOOK_SECONDS: Final = 0.05
"""While there are wishes: who leads a partition changes without a word in the metadata."""
ARRIVED_SECONDS: Final = 0.5
"""The target lets the leader before it say how the move went, for so long."""
LATE_SECONDS: Final = 5.0
"""So long is tried what is too late by this broker's clock. It may be wrong: a wish's deadline is
set, and the wish struck, by the clock of who leads the metadata."""
_AGAIN_SECONDS: Final = 0.1

logger = logging.getLogger(__name__)


class Groups(Protocol):
    """The groups of this broker: a `ReplicationNode`."""

    @property
    def node_id(self) -> NodeId: ...
    @property
    def moves(self) -> Moves: ...
    def get(self, key: PartitionKey) -> GroupReplica | None: ...
    def move_leader(
        self, key: PartitionKey, target: NodeId, deadline: float, *, now: float
    ) -> None: ...


Report = Callable[[Sequence[MoveOutcome]], Awaitable[None]]
"""Has wishes struck, by whoever leads the metadata. Raises `RequestError`."""


class MoveExecutor:
    """See the module. `run` and `run_reports` are its tasks."""

    def __init__(
        self,
        groups: Groups,
        metadata: Metadata,
        report: Report,
        *,
        turn: Turn,
        touch: Callable[[], None],
        clock: Clock,
        metrics: MoveMetrics,
    ) -> None:
        self._groups = groups
        self._metadata = metadata
        self._report = report
        self._turn = turn
        self._touch = touch
        self._clock = clock
        self._metrics = metrics
        # Wishes that this broker carries out, or has.
        self._begun: dict[PartitionId, LeaderMove] = {}
        self._arrived: dict[PartitionId, float] = {}
        self._outcomes: dict[PartitionId, MoveOutcome] = {}
        self._has_outcomes = trio.Event()

    # Carrying out

    async def run(self) -> None:
        """Look at the wishes whenever the metadata change, and often while there are any."""
        while True:
            state = self._metadata.state
            self._turn.run(self._look)
            seconds = LOOK_SECONDS if state.wishes.moves else float("inf")
            with trio.move_on_after(seconds):
                await self._metadata.wait_version(state.version + 1)

    def _look(self) -> None:
        wishes = self._metadata.state.wishes.moves
        for each, move in self._begun.items():
            if wishes.get(each) != move:
                self._abort(PartitionKey(*each))
        for each in [each for each in self._arrived if each not in wishes]:
            del self._arrived[each]
        for wish in wishes.values():
            replica = self._groups.get(PartitionKey(*wish.id))
            if replica is not None and replica.is_leader:
                self._see_to(wish, replica)
            else:
                self._arrived.pop(wish.id, None)
        counted = Counter(self._groups.moves.phases())
        self._metrics.running = {phase: counted[phase] for phase in Phase}
        self._touch()

    def _see_to(self, wish: LeaderMove, replica: GroupReplica) -> None:
        if wish.id in self._outcomes:
            return
        if wish.target == self._groups.node_id:
            since = self._arrived.setdefault(wish.id, trio.current_time())
            if trio.current_time() >= since + ARRIVED_SECONDS:
                self._say(_outcome(wish, None))
        elif replica.key not in self._groups.moves and wish.id not in self._begun:
            self._begin(wish, replica)

    def _begin(self, wish: LeaderMove, replica: GroupReplica) -> None:
        seconds_left = (wish.deadline_ms - self._clock.now_ms()) / 1000
        if seconds_left <= 0:
            seconds_left = LATE_SECONDS
        now = trio.current_time()
        try:
            self._groups.move_leader(replica.key, wish.target, now + seconds_left, now=now)
        except RequestError as error:
            # Who leads and does not serve yet will soon.
            if error.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._say(_outcome(wish, error.message or str(error)))
        else:
            self._begun[wish.id] = wish

    def ended(self, ended: Sequence[EndedMove]) -> None:
        """For the driver: moves from here are over; also those that others have asked for."""
        for each in ended:
            wish = self._begun.pop(PartitionId(*each.key), None)
            if wish is None or wish.target != each.target:
                continue
            self._note(wish, each)
            if each.ending is not Ending.LEFT:
                failure = None if each.ending is Ending.DONE else each.why
                self._say(_outcome(wish, failure, each))

    def _note(self, wish: LeaderMove, ended: EndedMove) -> None:
        self._metrics.ended[ended.ending].inc()
        if ended.attempts:
            self._metrics.pause.observe(ended.paused_seconds)
        logger.log(
            logging.INFO if ended.ending is Ending.DONE else logging.WARNING,
            "the leader of %s %s: writes were held for %.1f ms in %s, after %.1f ms of catching up"
            "%s%s",
            self._name(ended.key),
            _WHAT[ended.ending] % ended.target,
            ended.paused_seconds * 1000,
            "1 attempt" if ended.attempts == 1 else f"{ended.attempts} attempts",
            ended.catch_up_seconds * 1000,
            f" ({wish.reason})" if wish.reason else "",
            f": {ended.why}" if ended.why else "",
        )

    def _name(self, key: PartitionKey) -> str:
        """For people. The replica here may be given up by now, and the topic deleted."""
        topic = self._metadata.state.topic_by_id(key.topic_id)
        if topic is None:
            return f"partition {key.partition} of a topic that is deleted (id {key.topic_id})"
        return f"{topic.name}-{key.partition}"

    def _abort(self, key: PartitionKey) -> None:
        """The wish is not there any more: it was struck. If the lead has gone, let it end so."""
        replica = self._groups.get(key)
        if replica is not None and replica.is_leader:
            self._groups.moves.abort(key, "it is not wished any more", trio.current_time())

    # Saying what became of them

    def _say(self, outcome: MoveOutcome) -> None:
        self._outcomes[outcome.id] = outcome
        self._has_outcomes.set()

    async def run_reports(self) -> None:
        """Have wishes struck, until they are."""
        while True:
            await self._has_outcomes.wait()
            self._has_outcomes = trio.Event()
            while self._outcomes:
                reported = list(self._outcomes.values())
                try:
                    await self._report(reported)
                except RequestError as error:
                    logger.debug("outcomes of leaders' moves are not noted yet: %s", error)
                    await trio.sleep(_AGAIN_SECONDS)
                wishes = self._metadata.state.wishes.moves
                for outcome in reported:
                    wish = wishes.get(outcome.id)
                    if wish is None or (wish.target, wish.deadline_ms) != _wish_of(outcome):
                        self._outcomes.pop(outcome.id, None)


_WHAT: Final = {
    Ending.DONE: "went to broker %d",
    Ending.FAILED: "did not go to broker %d",
    Ending.LEFT: "was to go to broker %d, and was lost to another",
}


def _wish_of(outcome: MoveOutcome) -> tuple[NodeId, int]:
    return outcome.target, outcome.deadline_ms


def _outcome(wish: LeaderMove, failure: str | None, ended: EndedMove | None = None) -> MoveOutcome:
    return MoveOutcome(
        topic_id=wish.topic_id,
        partition=wish.partition,
        target=wish.target,
        deadline_ms=wish.deadline_ms,
        failure=failure,
        attempts=0 if ended is None else ended.attempts,
        catch_up_us=0 if ended is None else int(ended.catch_up_seconds * 1e6),
        pause_us=0 if ended is None else int(ended.paused_seconds * 1e6),
    )
