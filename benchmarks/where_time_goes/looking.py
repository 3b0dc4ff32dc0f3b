"""A path under load, looked at: threads, samples and system calls of its brokers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks import on_cpu
from benchmarks.resources import calls_in
from benchmarks.where_time_goes.paths import PATHS, Profiled
from benchmarks.where_time_goes.profile import Profile
from benchmarks.where_time_goes.steps import step_of
from tidemark.testing.process import BrokerProcess

SECONDS: Final = 15.0
WARM_SECONDS: Final = 5.0
"""A broker goes on compiling codecs for a moment after it is ready."""


def look_at(path: str, folder: Path) -> Iterator[Profile]:
    """Put a path under load in a folder of its own, and look at each of its brokers."""
    data = folder / "data"
    data.mkdir()
    _have_sampled(folder)
    title, opened = PATHS[path]
    with opened(data) as profiled:
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
        samples = sampled[name].total()
        yield Profile(
            path=path,
            title=title,
            broker=name,
            unit=profiled.unit,
            microseconds=sum(used.values()),
            loop_microseconds=used["loop"],
            samples=samples,
            steps={step: n / samples for step, n in sampled[name].most_common()},
            calls=calls.get(name, {}),
        )


def _have_sampled(folder: Path) -> None:
    """From now on every Python process that is started counts its samples."""
    shutil.copy(on_cpu.__file__, folder / "sitecustomize.py")
    others = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    kept = [path for path in others if not (Path(path) / "sitecustomize.py").exists()]
    os.environ["PYTHONPATH"] = ":".join([str(folder), *kept])
    os.environ[on_cpu.FOLDER] = str(folder)


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


def _sampled(broker: BrokerProcess, folder: Path) -> Counter[str]:
    """How many samples of the loop's thread belong to each step."""
    written = folder / str(broker.pid)
    os.kill(broker.pid, signal.SIGUSR2)
    while not written.exists():
        time.sleep(0.05)
    counts: Counter[str] = Counter()
    for line in written.read_text().splitlines():
        count, _, frames = line.partition(" ")
        counts[step_of(frames.split(";"))] += int(count)
    return counts


def _calls(profiled: Profiled, folder: Path) -> dict[str, Mapping[str, float]]:
    """System calls a unit, of all threads; one run, slowed down by being watched."""
    tracers = {}
    for name, broker in profiled.brokers.items():
        command = ["strace", "-c", "-f", "-o", str(folder / f"{name}.calls"), "-p", str(broker.pid)]
        tracers[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(1)
    profiled.run()
    found: dict[str, Mapping[str, float]] = {}
    for name, tracer in tracers.items():
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        counts = calls_in((folder / f"{name}.calls").read_text())
        found[name] = {call: count / profiled.units for call, count in counts.items()}
    return found
