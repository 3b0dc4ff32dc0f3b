"""A workload under way: how much time it gets, who makes its load, and what it has given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from benchmarks.load.generator import Generator, Said
from benchmarks.matrix.measured import Measured, histogram_in
from benchmarks.matrix.processes import used
from benchmarks.matrix.targets import Target, Topic
from benchmarks.matrix.workload import Workload
from tidemark.client.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much time a workload gets."""

    runs: int = 3
    seconds: float = 1.0
    latency_seconds: float = 2.0
    load: float = 0.3
    """Of the full speed, for latency."""
    rate: float | None = None
    """Requests a second for latency, where two brokers are to have the same."""
    prefill_bytes: int = 256_000_000
    """What there is to catch up with."""


FULL: Final = Plan()
QUICK: Final = Plan(runs=3, seconds=0.5, latency_seconds=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generators:
    producer: Generator
    consumer: Generator


class Session:
    """A workload under way: its topic, its producers, and what has been measured."""

    def __init__(
        self, target: Target, topic: Topic, workload: Workload, load: Generators, plan: Plan
    ) -> None:
        self.target = target
        self.topic = topic
        self.workload = workload
        self.load = load
        self.plan = plan
        self.measured = Measured(workload=workload, target=target.name)

    def producing(self) -> AbstractContextManager[Said]:
        return self.load.producer.task(**produce_task(self.workload, self.topic))

    def produce(self, *, rate: float | None = None) -> tuple[Said, float]:
        """One run; what the generator said, and the seconds of processor that the brokers took."""
        seconds = self.plan.seconds if rate is None else self.plan.latency_seconds
        before = used(self.target.pids).cpu_seconds
        said = self.load.producer.run(seconds=seconds, rate=rate)
        return said, used(self.target.pids).cpu_seconds - before

    def note_memory(self) -> None:
        memory = used(self.target.pids)
        self.measured.note("resident memory", memory.resident_bytes / 1e6)
        self.measured.note("resident memory, at most", memory.peak_bytes / 1e6)

    def note_latency(self, what: str, histogram: Histogram, said: Said) -> None:
        self.measured.latencies.setdefault(what, []).append(histogram)
        late = histogram_in(said, "lateness").percentile(99)
        self.measured.lateness_ns = max(self.measured.lateness_ns, late)


def produce_task(workload: Workload, topic: Topic) -> dict[str, object]:
    return {
        "role": "produce",
        "topic": topic.name,
        "lanes": [{"address": lane.address, "partitions": lane.partitions} for lane in topic.lanes],
        "connections": max(workload.connections, len(topic.lanes)),
        "in_flight": workload.in_flight,
        "acks": workload.acks,
        "batch_bytes": workload.batch_bytes,
        "record_bytes": workload.record_bytes,
        "compression": workload.compression,
        "warm": workload.partitions,
        "is_bare": False,
    }


def consume_task(
    session: Session,
    ready: Said,
    readers: Sequence[tuple[int, Mapping[int, int], Mapping[int, int] | None]],
) -> dict[str, object]:
    """So many readers from these offsets on, up to those, at each broker that leads any."""
    lanes = [
        {
            "address": lane.address,
            "partitions": lane.partitions,
            "starts": [starts[number] for number in lane.partitions],
            "ends": [] if ends is None else [ends[number] for number in lane.partitions],
            "count": count,
        }
        for count, starts, ends in readers
        for lane in session.topic.lanes
    ]
    return {
        "role": "consume",
        "topic": session.topic.name,
        "lanes": lanes,
        "batch_bytes": ready["batch_bytes"],
        "batch_records": ready["batch_records"],
        "fetch_bytes": session.workload.fetch_bytes,
    }
