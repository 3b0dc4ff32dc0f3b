"""What does reading the tail cost, by one consumer and by a hundred?

A producer writes 128 KB batches on a schedule, once alone and once with readers that wait at the
end of the log; what the broker's processor does more is theirs. It is held to what a bare
`sendfile` of as many bytes takes of its sender's processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.limits import sendfile_transfers
from benchmarks.matrix.command import open_generators
from benchmarks.matrix.run import measure as measure_workload
from benchmarks.matrix.session import Generators, Plan
from benchmarks.matrix.targets import Target, open_target
from benchmarks.matrix.workload import Workload

_PAIRS: Final = 5
_ONCE: Final = Plan(runs=1, seconds=0.5, latency_seconds=2.0)
_ALONE: Final = Workload(
    name="one", group="fan-out", kind="tail", batch_bytes=131_072, consumers=1, share=0.1
)
_MANY: Final = replace(_ALONE, name="a hundred", consumers=100, share=0.005)
_SENDFILE_BYTES: Final = 256_000_000


def measure(directory: Path) -> Iterator[Row]:
    """The broker's processor time for a MB, against `sendfile`; a hundred against one. A difference
    of two loads: where it is within their noise it may be less than nothing."""
    with open_generators() as load, open_target(directory / "fan-out", 1) as target:
        beside_sendfile = in_pairs(
            lambda: _cost(target, _ALONE, load),
            lambda: _sendfile_cost(directory),
            runs=_PAIRS,
        )
        yield row_of_pairs(
            "tail: the broker's processor time for a MB",
            "1 consumer, batches of 128 KB",
            "ms",
            beside_sendfile,
            against="loopback sendfile",
        )
        yield row_of_pairs(
            "tail: the broker's processor time for a MB to each",
            "100 consumers, batches of 128 KB",
            "ms",
            in_pairs(
                lambda: _cost(target, _MANY, load),
                lambda: _cost(target, _ALONE, load),
                runs=_PAIRS,
            ),
            against="one consumer",
            aim=2.0,
            at_most=True,
        )


def _cost(target: Target, workload: Workload, load: Generators) -> float:
    """Milliseconds of the broker's processor for a MB to a consumer."""
    return measure_workload(target, workload, load, _ONCE).figures["processor time a MB"][0]


def _sendfile_cost(directory: Path) -> float:
    (transfer,) = sendfile_transfers(directory, size_bytes=_SENDFILE_BYTES, runs=1)
    return transfer.cpu_seconds_per_byte * 1e9
