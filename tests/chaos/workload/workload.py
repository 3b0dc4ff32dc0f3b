"""All clients of a run: topics with different promises, and a group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from tests.chaos.workload.group import GroupRun
from tests.chaos.workload.promise import CACHED, LEADER_ONLY, MOVED, SYNCED, Promise
from tests.chaos.workload.racks import rack_of
from tests.chaos.workload.stream import PARTITIONS, Stream

_MEMBERS: Final = 3
_GROUP_END_SECONDS: Final = 60.0


class Workload:
    """The clients of one cluster."""

    def __init__(
        self, bootstrap: str, *, nodes: Sequence[int], sends_per_second: float, seed: int
    ) -> None:
        self.ended: list[Stream] = []
        """Those whose topic lost what it did not promise to keep: each made place for another."""
        self.problems: list[str] = []
        self._bootstrap = bootstrap
        self._nodes = nodes
        self._sends_per_second = sends_per_second
        self.synced = Stream(bootstrap, SYNCED.name, SYNCED)
        self.cached = Stream(bootstrap, f"{CACHED.name}-1", CACHED)
        self.leader_only = Stream(bootstrap, LEADER_ONLY.name, LEADER_ONLY)
        self.moved = Stream(bootstrap, MOVED.name, MOVED)
        self.group = GroupRun(bootstrap, SYNCED.name, PARTITIONS, Random(seed))

    @property
    def current(self) -> list[Stream]:
        return [self.synced, self.cached, self.leader_only, self.moved]

    @property
    def streams(self) -> list[Stream]:
        return [*self.ended, *self.current]

    @property
    def movable(self) -> list[Stream]:
        """Those with fewer replicas than there are brokers."""
        return [each for each in self.current if each.promise.replicas < len(self._nodes)]

    def replicas_of(self, topic: str) -> int:
        """As many as it was made with."""
        (promise,) = (each.promise for each in self.streams if each.topic == topic)
        return min(promise.replicas, len(self._nodes))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the clients; at the end, what is in flight is waited for, and all is read."""
        for stream in self.current:
            self._create(stream)
            self._start(stream)
        self.group.start(_MEMBERS)
        try:
            yield
        finally:
            for stream in self.current:
                stream.stop()

    def read_to_the_end(self) -> None:
        for stream in self.current:
            stream.read_to_the_end()
        ends = _ends(self.synced)
        if not self.group.finish(ends, _GROUP_END_SECONDS):
            self.problems.append(f"the group does not commit up to {ends}")

    def served_since(self, started: float, seconds: float) -> float | None:
        return _served_since(self._alive, started, seconds)

    def served_beside(self, started: float, seconds: float) -> float | None:
        """As `served_since`, of all that one broker less leaves a majority of."""
        kept = [each for each in self._alive if each.promise.replicas > 2]
        return _served_since(kept, started, seconds)

    def unserved_since(self, started: float) -> list[str]:
        return [name for stream in self._alive for name in stream.unserved_since(started)]

    @property
    def _alive(self) -> list[Stream]:
        return [stream for stream in self.current if stream.lost_power_at is None]

    def majority_lost_power(self, at: float) -> None:
        """What was only in page caches may be gone, and `renew` is to be called."""
        self.cached.lose(at)

    def renew(self) -> None:
        """A new topic in place of one that has lost what it may lose."""
        if self.cached.lost_power_at is None:
            return
        self.cached.stop()
        self.ended.append(self.cached)
        self.cached = Stream(self._bootstrap, f"{CACHED.name}-{len(self.ended) + 1}", CACHED)
        self._create(self.cached)
        self._start(self.cached)

    def _create(self, stream: Stream) -> None:
        stream.create(self.replicas_of(stream.topic))

    def _start(self, stream: Stream) -> None:
        rate = self._sends_per_second * _share(stream.promise)
        producers = {SYNCED: 2, CACHED: PARTITIONS}.get(stream.promise, 1)
        # So that somebody reads from observers, which only these topics have.
        racks = [rack_of(node) for node in self._nodes] if stream in self.movable else []
        stream.start(
            producers=producers,
            racks=racks,
            sends_per_second=rate,
            # Whose only partition is led by a broker that is cut off speaks to no other one.
            one_partition_each=stream.promise is CACHED,
        )


def _served_since(streams: Sequence[Stream], started: float, seconds: float) -> float | None:
    """How long after `started` every partition has acknowledged a send that began after it.

    `None` if one has not within so many seconds.
    """
    while True:
        if all(newest >= started for stream in streams for newest in stream.acknowledged):
            return time.monotonic() - started
        if time.monotonic() - started > seconds:
            return None
        time.sleep(0.02)


def _share(promise: Promise) -> float:
    return 0.4 if promise is SYNCED else 0.2


def _ends(stream: Stream) -> dict[int, int]:
    """Behind the last record that anybody has read of each partition."""
    ends = dict.fromkeys(range(PARTITIONS), 0)
    for poll in stream.history.polls:
        for record in poll.records:
            number = record.partition.partition
            ends[number] = max(ends[number], record.offset + 1)
    return ends


def problems_of(streams: Sequence[Stream]) -> list[str]:
    return [f"{stream.topic}: {problem}" for stream in streams for problem in stream.problems]
