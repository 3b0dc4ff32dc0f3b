"""One workload on one target: at full speed, then on a schedule at a third of that.

What is compared is the brokers' processor time, since load and brokers share the machine: their
figures a second are what is left over for them. Runs follow each other on the same topic. Where
nobody reads, each gives up what those before it have written, and begins with a disk at rest: a
topic that only grows soon writes to memory that a virtual machine's host has yet to find, at a
tenth of the speed, and a schedule that begins behind a run at full speed waits for what that left.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.load.generator import Said
from benchmarks.matrix.measured import Measured, delivered, histogram_in
from benchmarks.matrix.processes import used
from benchmarks.matrix.session import Generators, Plan, Session, consume_task
from benchmarks.matrix.targets import Target
from benchmarks.matrix.workload import Workload

_RATE_MIN: Final = 20.0
"""Below that there is nothing to take a percentile of."""


def measure(target: Target, workload: Workload, load: Generators, plan: Plan) -> Measured:
    """Raises `GeneratorFailed` if the load could not be made."""
    name = f"bench-{time.monotonic_ns()}"
    with target.topic(
        name, partitions=workload.partitions, replicas=workload.replicas, flush=workload.flush
    ) as topic:
        session = Session(target, topic, workload, load, plan)
        _KINDS[workload.kind](session)
        session.note_memory()
    return session.measured


def _produce(session: Session) -> None:
    with session.producing() as ready:
        rates = []
        for _ in range(session.plan.runs):
            session.topic.begin_anew()
            said, cpu = session.produce()
            size = said["requests"] * ready["batch_bytes"]
            session.measured.note_work(
                said["requests"], size, said["seconds"], cpu, handled=said["handled"]
            )
            session.measured.generator_share.append(said["cpu_seconds"] / said["seconds"])
            rates.append(said["requests"] / said["seconds"])
        rate = session.plan.rate or session.plan.load * statistics.median(rates)
        session.measured.rate = rate
        for _ in range(session.plan.runs):
            session.topic.begin_anew()
            said, _ = session.produce(rate=rate)
            session.note_latency("acknowledged", histogram_in(said), said)


def _tail(session: Session) -> None:
    """With and without readers: the difference is what reading costs."""
    with session.producing() as ready:
        rate = _share_of_full_speed(session)
        for _ in range(session.plan.runs):
            _, alone = session.produce(rate=rate)
            ends = session.topic.ends()
            task = consume_task(session, ready, [(session.workload.consumers, ends, None)])
            with session.load.consumer.task(**task):
                said, read, both = _produce_beside_readers(session, ready, rate)
            session.measured.note_work(
                read["requests"], read["size_bytes"], said["seconds"], both - alone
            )
            _note_tail(session, ready, ends, said, read)


def _mixed(session: Session) -> None:
    """A producer on a schedule, a reader at the tail, and others that catch up again and again."""
    with session.producing() as ready:
        rate = _share_of_full_speed(session)
        for _ in range(session.plan.runs):
            ends = session.topic.ends()
            lanes = [
                (1, ends, None),
                (session.workload.consumers - 1, dict.fromkeys(ends, 0), ends),
            ]
            with session.load.consumer.task(**consume_task(session, ready, lanes)):
                said, read, cpu = _produce_beside_readers(session, ready, rate)
            written = said["requests"] * ready["batch_bytes"]
            session.measured.note_work(
                said["requests"] + read["requests"],
                written + read["size_bytes"],
                said["seconds"],
                cpu,
            )
            _note_tail(session, ready, ends, said, read)


def _catch_up(session: Session) -> None:
    with session.producing() as ready:
        requests = -(-session.plan.prefill_bytes // ready["batch_bytes"])
        while requests > 0:
            requests -= session.produce()[0]["requests"]
        ends = session.topic.ends()
        task = consume_task(
            session, ready, [(session.workload.consumers, dict.fromkeys(ends, 0), ends)]
        )
        for _ in range(session.plan.runs + 1):
            with session.load.consumer.task(**task):
                before = used(session.target.pids).cpu_seconds
                session.load.consumer.tell({"go": True})
                time.sleep(session.plan.seconds)
                read = session.load.consumer.run(tail_bytes=0)
                cpu = used(session.target.pids).cpu_seconds - before
            session.measured.note_work(read["requests"], read["size_bytes"], read["seconds"], cpu)
            session.measured.generator_share.append(read["cpu_seconds"] / read["seconds"])
        for values in (*session.measured.figures.values(), session.measured.generator_share):
            del values[0]  # the first one was the cache's


def _share_of_full_speed(session: Session) -> float:
    """The rate of the schedule, with readers and without."""
    said, _ = session.produce()
    share = said["requests"] / said["seconds"] * session.workload.share
    session.measured.rate = rate = session.plan.rate or max(share, _RATE_MIN)
    return rate


def _produce_beside_readers(session: Session, ready: Said, rate: float) -> tuple[Said, Said, float]:
    before = used(session.target.pids).cpu_seconds
    session.load.consumer.tell({"go": True})
    said, _ = session.produce(rate=rate)
    read = session.load.consumer.run(tail_bytes=said["requests"] * ready["batch_bytes"])
    return said, read, used(session.target.pids).cpu_seconds - before


def _note_tail(
    session: Session, ready: Said, starts: Mapping[int, int], said: Said, read: Said
) -> None:
    session.note_latency("acknowledged", histogram_in(said), said)
    assert session.measured.rate is not None
    arrived = delivered(
        read["arrivals"],
        first=starts[0],
        each=ready["batch_records"],
        began_ns=said["began_ns"],
        rate=session.measured.rate,
    )
    session.note_latency("delivered", arrived, said)
    session.measured.generator_share.append(
        (said["cpu_seconds"] + read["cpu_seconds"]) / said["seconds"]
    )


_KINDS: Final[Mapping[str, Callable[[Session], None]]] = {
    "produce": _produce,
    "tail": _tail,
    "catch-up": _catch_up,
    "mixed": _mixed,
}
