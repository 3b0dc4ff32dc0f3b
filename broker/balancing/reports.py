"""Who leads tells who plans: each broker what it leads, to the leader of the cluster's metadata.

A report has only what has changed by more than a little since the leader was last told, and not
more than some hundreds of partitions: where there are more, there are several. To another leader,
or after a report that may not have come, everything is told anew. What is lost is made up for.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import trio

from tidemark.broker.balancing.overgrowth import Overgrowth
from tidemark.broker.looks import next_look
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.load_report import (
    GroupLoad,
    LoadReportRequest,
    LoadReportResponse,
    VoterLag,
)
from tidemark.protocol.types import Epoch, NodeId

REPORT_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 4.0
"""Between two looks at most, where the last ones had nothing to tell."""
LOOK_SECONDS: Final = 0.5
"""Whether another broker leads the metadata: it wants to know soon."""
GROUPS_MAX: Final = 500
"""In one report: about 50 kB."""
_ANSWER_SECONDS: Final = 5.0
_RATE_CHANGE: Final = 0.02
_RATE_CHANGE_MIN_PER_SECOND: Final = 1_000
_SIZE_CHANGE: Final = 0.1
_SIZE_CHANGE_MIN: Final = 1 << 20

Leader: TypeAlias = Callable[[], tuple[NodeId | None, Epoch]]
"""Who leads the metadata, and in which epoch."""
Look: TypeAlias = Callable[[], Awaitable[Sequence[GroupLoad]]]
"""What this broker leads; the same object again where nothing has changed."""
Tell: TypeAlias = Callable[[NodeId, LoadReportRequest], Awaitable[LoadReportResponse]]
"""Tells another broker, or this one. Raises `RequestError` where it cannot be reached."""

logger = logging.getLogger(__name__)


class DiskState(NamedTuple):
    """Of a broker, as it was told."""

    is_full: bool
    """Whether it takes no records."""
    since_ms: int | None
    """Since when it is so; None: since before it was first told."""


_HAS_ROOM: Final = DiskState(is_full=False, since_ms=None)


def _do_nothing() -> None:
    pass


class Reports:
    """What the brokers have told, for as long as this one leads the metadata."""

    def __init__(
        self, leading_epoch: Callable[[], Epoch | None], now_ms: Callable[[], int]
    ) -> None:
        """`leading_epoch`: the one in which this broker leads the metadata, None if it does not."""
        self._leading_epoch = leading_epoch
        self._now_ms = now_ms
        self._epoch: Epoch | None = None
        self._loads: dict[NodeId, dict[PartitionKey, GroupLoad]] = {}
        # Also of those that have told nothing in this epoch: since when a disk has room does not
        # change with whom is told of it.
        self._disks: dict[NodeId, DiskState] = {}
        self._changed: set[PartitionKey] = set()
        self._overgrowth = Overgrowth()
        self.on_disk: Callable[[], None] = _do_nothing
        """Called when a disk is told of for the first time, or is full, or has room again."""

    def take(self, reporter: NodeId, report: LoadReportRequest) -> LoadReportResponse:
        epoch = self._leading_epoch()
        if epoch is None or epoch != report.epoch:
            return LoadReportResponse(error_code=ErrorCode.NOT_CONTROLLER)
        self._be_in(epoch)
        is_first = reporter not in self._loads
        if report.begins:
            self._changed.update(self._loads.pop(reporter, ()))
        loads = self._loads.setdefault(reporter, {})
        if self._note_disk(reporter, is_full=report.is_full) or is_first:
            self.on_disk()
        for load in report.groups:
            key = _key(load)
            loads[key] = replace(load, voters=_one_for_all(tuple(load.voters)))
            self._changed.add(key)
        return LoadReportResponse()

    def load(self, key: PartitionKey, leader: NodeId, epoch: Epoch) -> GroupLoad | None:
        """What the leader has said about a partition, since it leads in that epoch."""
        load = self._loads.get(leader, {}).get(key)
        return load if load is not None and load.epoch == epoch else None

    def _note_disk(self, node: NodeId, *, is_full: bool) -> bool:
        """Whether that is new."""
        was = self._disks.get(node, _HAS_ROOM)
        if was.is_full is is_full:
            self._disks[node] = was
            return False
        self._disks[node] = DiskState(is_full, self._now_ms())
        return True

    def disk(self, node: NodeId) -> DiskState | None:
        """Whether a broker's disk takes records; None if it has not said so yet."""
        return self._disks[node] if node in self._loads else None

    def take_told(self) -> Collection[PartitionKey]:
        """The partitions of which `load` may answer something else than when this was last
        asked."""
        self._be_in(self._leading_epoch())
        changed, self._changed = self._changed, set()
        return changed

    def forget_topics(self, topics: Collection[UUID]) -> None:
        """They were deleted."""
        for loads in self._loads.values():
            for key in [key for key in loads if key.topic_id in topics]:
                del loads[key]

    def forget_gone(self, is_there: Callable[[UUID], bool]) -> None:
        """Forget all topics but those that are there: a report may come after the deletion. To be
        called again and again (`Overgrowth`)."""
        if not self._overgrowth.is_due(sum(map(len, self._loads.values()))):
            return
        for loads in self._loads.values():
            for key in [key for key in loads if not is_there(key.topic_id)]:
                del loads[key]
        self._overgrowth.kept(sum(map(len, self._loads.values())))

    def _be_in(self, epoch: Epoch | None) -> None:
        if self._epoch != epoch:
            # What was said in an earlier one may have changed, and not been told.
            self._epoch = epoch
            self._changed.update(*self._loads.values())
            self._loads.clear()


class Reporter:
    """This broker's part: tells the leader of the metadata what it leads."""

    def __init__(
        self, leader: Leader, look: Look, tell: Tell, *, is_full: Callable[[], bool]
    ) -> None:
        """`is_full`: whether the disk here takes no records."""
        self._leader = leader
        self._look = look
        self._tell = tell
        self._is_full = is_full
        self._told_full = False
        self._told: dict[PartitionKey, GroupLoad] = {}
        # What there was the last time, and was told or was no news: mostly it is all there still.
        self._settled: dict[int, GroupLoad] = {}
        self._told_to: tuple[NodeId, Epoch] | None = None
        # All of what was found last, if nothing of it is left to be told.
        self._told_all: Sequence[GroupLoad] | None = None

    async def run(self) -> None:
        pause = REPORT_SECONDS
        while True:
            pause = REPORT_SECONDS if await self.report() else min(2 * pause, QUIET_SECONDS)
            with trio.move_on_after(pause):
                await trio.sleep_until(next_look(LOOK_SECONDS))
                while self._has_told:  # noqa: ASYNC110 # nobody says when
                    await trio.sleep_until(next_look(LOOK_SECONDS))

    async def report(self) -> bool:
        """Look once, and tell whoever leads the metadata; whether there is news, or nobody."""
        loads = await self._look()
        leader, epoch = self._leader()
        if leader is None:
            return True
        begins, is_full = self._told_to != (leader, epoch), self._is_full()
        is_due = begins or is_full != self._told_full
        if not is_due and loads is self._told_all:
            return False
        self._told_all = None
        if begins:
            self._told.clear()
            self._settled.clear()
        changed = [
            load
            for load in loads
            if id(load) not in self._settled and is_news(self._told.get(_key(load)), load)
        ]
        is_news_told = is_due or bool(changed)
        while changed or is_due:
            told, changed = changed[:GROUPS_MAX], changed[GROUPS_MAX:]
            request = LoadReportRequest(epoch=epoch, begins=begins, is_full=is_full, groups=told)
            if not await self._report(leader, request):
                self._told_to = None
                return True
            self._told_to, self._told_full = (leader, epoch), is_full
            begins = is_due = False
            self._told.update((_key(load), load) for load in told)
        self._settled = {id(load): load for load in loads}
        if len(self._told) > len(loads):
            # Of what is led elsewhere by now, or was deleted, nothing is told any more.
            led = {_key(load) for load in loads}
            self._told = {key: load for key, load in self._told.items() if key in led}
        self._told_all = loads
        return is_news_told

    async def _report(self, leader: NodeId, request: LoadReportRequest) -> bool:
        """Whether it was taken."""
        with trio.move_on_after(_ANSWER_SECONDS):
            try:
                answered = await self._tell(leader, request)
            except RequestError as error:
                logger.debug("no report to broker %s: %s", leader, error)
                return False
            return answered.error_code == ErrorCode.NONE
        return False

    @property
    def _has_told(self) -> bool:
        """Whether whoever leads the metadata, if anybody does, has heard of this broker, and of the
        room on its disk as it is."""
        leader = self._leader()
        if leader[0] is None:
            return True
        return leader == self._told_to and self._is_full() == self._told_full


def is_news(told: GroupLoad | None, load: GroupLoad) -> bool:
    """Whether a partition has changed by more than a little since it was last told."""
    if told is None or told is load:
        return told is None
    if (
        _differ(
            told.bytes_in_per_second,
            load.bytes_in_per_second,
            _RATE_CHANGE,
            _RATE_CHANGE_MIN_PER_SECOND,
        )
        or _differ(
            told.bytes_out_per_second,
            load.bytes_out_per_second,
            _RATE_CHANGE,
            _RATE_CHANGE_MIN_PER_SECOND,
        )
        or _differ(told.size_bytes, load.size_bytes, _SIZE_CHANGE, _SIZE_CHANGE_MIN)
    ):
        return True
    # Asked of thousands: to compare all at once takes a copy with the other's figures, which is
    # five times as dear.
    return (
        told.epoch != load.epoch
        or told.is_changing != load.is_changing
        or told.voters != load.voters
        or told.learners != load.learners
    )


def _differ(told: int, now: int, share: float, least: int) -> bool:
    return abs(now - told) > max(least, share * told) or (now == 0) != (told == 0)


@lru_cache(maxsize=4096)
def _one_for_all(voters: tuple[VoterLag, ...]) -> tuple[VoterLag, ...]:
    """The same object for equal ones: thousands are kept, and nearly all look alike."""
    return voters


def _key(load: GroupLoad) -> PartitionKey:
    return PartitionKey(load.topic_id, load.partition)
