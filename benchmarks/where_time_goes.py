"""`python -m benchmarks.where_time_goes [PATH …]`: what a request costs, step by step.

Each path (`small`, `produce`, `synced`, `fetch`, `replicate`, `many`) is put under load, and three
things are looked at: the kernel's account of each thread's processor time, samples of it
(`on_cpu`), and, if `strace` is there, the system calls. A sample belongs to the step of its
innermost frame that has one; a step's microseconds are its share of the samples, of the processor
time for a request. On a busy machine they are more, in about the same proportion.
`docs/performance.md` has the tables.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import on_cpu
from benchmarks.against_limits import Address, address_of
from benchmarks.harness import STEADY_LEADERS
from benchmarks.raw_client import batch_of, fetch_load, produce_frame_to, produce_load
from benchmarks.resources import calls_in
from tidemark.protocol.records.header import read_header
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import open_process_cluster

SECONDS: Final = 15.0
WARM_SECONDS: Final = 5.0
"""A broker goes on compiling codecs for a moment after it is ready."""
_LEADER_SECONDS_MAX: Final = 120.0
_RETENTION_BYTES: Final = 1 << 30
_TOPIC: Final = "profiled"

# By the end of a file's path, and of these the first that fits; what is not here counts for the
# frame that called it.
STEPS: Final[Sequence[tuple[str, str]]] = (
    ("receive_buffer.py", "receive: recv_into, cut into frames"),
    ("network/send_queue.py", "send: send, sendmsg, sendfile"),
    ("one_batch.py", "know the request by its first bytes; its answer"),
    ("<decode>", "decode"),
    ("<encode>", "encode"),
    ("protocol/codec.py", "decode"),
    ("straight_line.py", "decode"),
    ("peers/decoding.py", "decode"),
    ("peers/encoding.py", "encode"),
    ("peer_frames.py", "encode"),
    ("steady_rows.py", "rows to bytes and back"),
    ("replicas/admission.py", "check the batch: header, CRC32C, limits"),
    ("replication/checking.py", "check the batch: header, CRC32C, limits"),
    ("records/header.py", "check the batch: header, CRC32C, limits"),
    ("storage/files.py", "write to the page cache: pwrite"),
    ("replication/recent.py", "keep a copy for the followers and the journal"),
    ("journal/records.py", "keep a copy for the followers and the journal"),
    ("partitions/storage/", "the log: position, index, roll"),
    ("state_machines/producers.py", "the producer's sequence"),
    ("partitions/raft/", "the group's core"),
    ("partitions/replication/", "the group's replica, rows, outbox"),
    ("replicas/fetch", "fetch: plan, wait, answer"),
    ("handlers/fetch.py", "fetch: plan, wait, answer"),
    ("handlers/produce.py", "the handler, who waits for the commit"),
    ("replicas/waiters.py", "the handler, who waits for the commit"),
    ("replicas/driver.py", "end of the turn: outputs, changes, timers"),
    ("broker/replicas/", "the partition as clients see it"),
    ("broker/peers/", "sockets between brokers"),
    ("broker/network/", "connection, dispatch, turn"),
    ("trio/", "trio: waiting, waking, threads"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A path under load: `run` moves `units` of what is counted; `brokers` are looked at."""

    unit: str
    units: int
    run: Callable[[], None]
    brokers: dict[str, BrokerProcess]


@contextmanager
def _produce(
    directory: Path, *, replicas: int, partitions: int, batch_bytes: int, requests: int, flush: str
) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=replicas, settings=STEADY_LEADERS) as cluster:
        leader, led = _topic(cluster.brokers, partitions, flush)
        address = address_of(cluster.brokers[leader])
        frame = produce_frame_to(
            _TOPIC, dict.fromkeys(led, batch_of(batch_bytes, record_bytes=1_000))
        )
        _wait_taken(address, frame)
        followers = [broker for node, broker in cluster.brokers.items() if node != leader]
        brokers = dict(zip(("leader", "follower"), [cluster.brokers[leader], *followers]))
        yield Profiled(
            unit="request" if partitions == 1 else "batch",
            units=requests * len(led),
            run=lambda: _done(produce_load(address, frame, requests=requests)),
            brokers=brokers,
        )


@contextmanager
def _fetch(directory: Path) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=1) as cluster:
        _topic(cluster.brokers, 1, "os")
        address = address_of(cluster.brokers[1])
        batch, requests = batch_of(1_000_000, record_bytes=1_000), 300
        produce_load(address, produce_frame_to(_TOPIC, {0: batch}), requests=requests - 1)
        end = requests * read_header(batch).record_count
        yield Profiled(
            unit="MB",
            units=requests,
            run=lambda: _done(fetch_load(address, _TOPIC, end_offset=end, bytes_max=1_000_000)),
            brokers={"leader": cluster.brokers[1]},
        )


_PATHS: Final[dict[str, Callable[[Path], AbstractContextManager[Profiled]]]] = {
    "small": lambda path: _produce(
        path, replicas=1, partitions=1, batch_bytes=1_100, requests=4_000, flush="os"
    ),
    "produce": lambda path: _produce(
        path, replicas=1, partitions=1, batch_bytes=1_000_000, requests=100, flush="os"
    ),
    "synced": lambda path: _produce(
        path, replicas=1, partitions=1, batch_bytes=1_000_000, requests=100, flush="commit"
    ),
    "fetch": _fetch,
    "replicate": lambda path: _produce(
        path, replicas=3, partitions=1, batch_bytes=1_000_000, requests=50, flush="commit"
    ),
    "many": lambda path: _produce(
        path, replicas=3, partitions=200, batch_bytes=5_000, requests=10, flush="commit"
    ),
}


def _done(load: object) -> None:
    """A load's figures are not what is asked here."""


def _topic(
    brokers: dict[int, BrokerProcess], partitions: int, flush: str
) -> tuple[int, Sequence[int]]:
    """Make the topic; who leads most of it, and which partitions. Its retention keeps up, so that
    much is written over the files of old segments."""
    admin = AdminClient({"bootstrap.servers": brokers[1].bootstrap})
    assignment = [list(brokers)] * partitions
    config = {"flush": flush, "retention.bytes": str(_RETENTION_BYTES)}
    new = NewTopic(_TOPIC, partitions, replica_assignment=assignment, config=config)
    admin.create_topics([new])[_TOPIC].result(60)
    deadline = time.monotonic() + _LEADER_SECONDS_MAX
    while time.monotonic() < deadline:
        found = admin.list_topics(_TOPIC, timeout=10).topics[_TOPIC].partitions
        leaders = {number: partition.leader for number, partition in found.items()}
        if leaders and min(leaders.values()) > 0:
            ((leader, _),) = Counter(leaders.values()).most_common(1)
            return leader, [number for number in leaders if leaders[number] == leader]
        time.sleep(0.05)
    raise RuntimeError("partitions stay without a leader")


def _wait_taken(address: Address, frame: bytes) -> None:
    """Until the request is answered without an error: who leads may not serve yet."""
    deadline = time.monotonic() + _LEADER_SECONDS_MAX
    while True:
        try:
            produce_load(address, frame, requests=5)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _look(profiled: Profiled, folder: Path) -> None:
    _run_for(profiled, WARM_SECONDS)
    for broker in profiled.brokers.values():
        os.kill(broker.pid, signal.SIGUSR1)
    before = {name: _threads(broker) for name, broker in profiled.brokers.items()}
    count = _run_for(profiled, SECONDS)
    after = {name: _threads(broker) for name, broker in profiled.brokers.items()}
    sampled = {name: _sampled(broker, folder) for name, broker in profiled.brokers.items()}
    calls = _calls(profiled, folder) if shutil.which("strace") else {}
    for name in profiled.brokers:
        used = {t: 1e6 * (s - before[name].get(t, 0)) / count for t, s in after[name].items()}
        loop, everything = used["loop"], sum(used.values())
        print(f"\n{name}: {everything:,.1f} µs a {profiled.unit}, {loop:,.1f} of the loop's thread")
        samples, shares = sampled[name]
        for step, share in shares:
            print(f"  {share * everything:9,.1f} µs {share:6.1%}  {step}")
        print(f"  ({samples} samples)")
        if name in calls:
            print("  system calls:", ", ".join(f"{c} {n:.2f}" for c, n in calls[name] if n >= 0.02))


def _run_for(profiled: Profiled, seconds: float) -> int:
    """Keep it under load; how many units that were."""
    deadline, count = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        profiled.run()
        count += profiled.units
    return count


def _threads(broker: BrokerProcess) -> dict[str, float]:
    """Processor seconds by thread; the first is the loop's."""
    found = {}
    for task in Path(f"/proc/{broker.pid}/task").iterdir():
        name = "loop" if task.name == str(broker.pid) else task.name
        found[name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def _sampled(broker: BrokerProcess, folder: Path) -> tuple[int, Sequence[tuple[str, float]]]:
    """How many samples there are, and the shares of the steps."""
    written = folder / str(broker.pid)
    os.kill(broker.pid, signal.SIGUSR2)
    while not written.exists():
        time.sleep(0.05)
    counts: Counter[str] = Counter()
    for line in written.read_text().splitlines():
        count, _, frames = line.partition(" ")
        counts[step_of(frames.split(";"))] += int(count)
    total = sum(counts.values())
    return total, [(step, count / total) for step, count in counts.most_common()]


def step_of(frames: Sequence[str]) -> str:
    """The step of the innermost frame that has one; `frames` are innermost first."""
    for frame in frames:
        for path, step in STEPS:
            if path in frame:
                return step
    return "other"


def _calls(profiled: Profiled, folder: Path) -> dict[str, Sequence[tuple[str, float]]]:
    """System calls a unit, of all threads; one run, slowed down by being watched."""
    tracers = {}
    for name, broker in profiled.brokers.items():
        command = ["strace", "-c", "-f", "-o", str(folder / f"{name}.calls"), "-p", str(broker.pid)]
        tracers[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(1)
    profiled.run()
    found: dict[str, Sequence[tuple[str, float]]] = {}
    for name, tracer in tracers.items():
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        counts = calls_in((folder / f"{name}.calls").read_text())
        found[name] = [(call, count / profiled.units) for call, count in counts.items()]
    return found


def _have_sampled(folder: Path) -> None:
    """From now on every Python process that is started counts its samples."""
    shutil.copy(on_cpu.__file__, folder / "sitecustomize.py")
    others = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    kept = [path for path in others if not (Path(path) / "sitecustomize.py").exists()]
    os.environ["PYTHONPATH"] = ":".join([str(folder), *kept])
    os.environ[on_cpu.FOLDER] = str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.where_time_goes")
    parser.add_argument("paths", nargs="*", metavar="PATH", help=", ".join(_PATHS))
    chosen = parser.parse_args()
    for path in chosen.paths or _PATHS:
        print(f"\n## {path}")
        with tempfile.TemporaryDirectory(prefix="tidemark-profile-") as folder:
            data = Path(folder) / "data"
            data.mkdir()
            _have_sampled(Path(folder))
            with _PATHS[path](data) as profiled:
                _look(profiled, Path(folder))


if __name__ == "__main__":
    main()
