"""Brokers that have settled in.

In its first seconds a broker imports what its start went without, one to seven milliseconds at a
time, on the loop that serves requests. How long requests take while it does so is another question
than how long they take.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.machine import with_bytecode
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess

_LOOK_SECONDS: Final = 1.0
_CALM_LOOKS: Final = 3
"""In a row: in the first second nothing of it has begun."""
_BUSY_SHARE: Final = 0.05
"""Of a core. An idle broker of three takes 0.01, one that settles in 0.1 and more."""
_SECONDS_MAX: Final = 30.0
"""Who is busy after that long is so for another reason."""


@contextmanager
def open_calm_broker(folder: Path) -> Iterator[BrokerProcess]:
    """A broker with its data in `folder`, which is made, that has settled in when the block begins.

    Its modules are compiled: where Python may write no bytecode, settling in takes many times as
    long.
    """
    folder.mkdir()
    environment = with_bytecode(folder / "bytecode")
    with BrokerProcess(folder / "data", environment=environment) as broker:
        wait_calm([broker.pid])
        yield broker


def wait_calm(pids: Collection[int]) -> None:
    """Until none of these processes has done much for a few seconds; at most half a minute."""
    deadline = time.monotonic() + _SECONDS_MAX
    calm = 0
    while calm < _CALM_LOOKS and time.monotonic() < deadline:
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(_LOOK_SECONDS)
        after = [cpu_seconds(pid) for pid in pids]
        busiest = max(b - a for a, b in zip(before, after, strict=True)) / _LOOK_SECONDS
        calm = calm + 1 if busiest < _BUSY_SHARE else 0
