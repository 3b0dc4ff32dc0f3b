"""This machine's limits for a workload, measured in the same run and by the same generators."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.against_limits import bare_loop
from benchmarks.harness import LIMIT, Row, row_of
from benchmarks.limits import sendfile_transfers, sync_latency
from benchmarks.load.generator import Generator
from benchmarks.matrix.measured import Limit, Measured
from benchmarks.matrix.processes import used
from benchmarks.matrix.session import Plan
from benchmarks.matrix.workload import Workload
from tidemark.cli.processes import listener_of

_SENDFILE_BYTES: Final = 512_000_000


class Limits:
    """The bare loop by request size, and `sendfile`; each is measured when it is first needed."""

    def __init__(self, directory: Path, producer: Generator, plan: Plan) -> None:
        self._directory = directory
        self._producer = producer
        self._plan = plan
        self._bare: dict[int, Measured] = {}
        self._sendfile: Measured | None = None

    def of(self, workload: Workload) -> Limit | None:
        """For a workload that only produces, or only catches up; the others have no such limit."""
        match workload.kind:
            case "produce":
                return Limit(name="the bare loop", figures=_medians(self._bare_loop(workload)))
            case "catch-up":
                return Limit(name="loopback sendfile", figures=_medians(self._transfers()))
            case _:
                return None

    def rows(self) -> Sequence[Row]:
        """What was measured of the machine itself, so far."""
        rows = list(sync_latency(self._directory).rows(f"{LIMIT}fdatasync"))
        for size_bytes, measured in sorted(self._bare.items()):
            rows += [_named(row, f"bare loop, {size_bytes:,} B") for row in measured.rows(None)]
        if self._sendfile is not None:
            rows += [_named(row, "loopback sendfile") for row in self._sendfile.rows(None)]
        return rows

    def _bare_loop(self, workload: Workload) -> Measured:
        size_bytes = workload.batch_bytes
        if size_bytes not in self._bare:
            self._bare[size_bytes] = self._measure_bare(workload)
        return self._bare[size_bytes]

    def _measure_bare(self, workload: Workload) -> Measured:
        measured = Measured(workload=workload, target="bare loop")
        with bare_loop(self._directory / "bare") as address:
            pids = [listener_of(address[1])]
            task = {
                "role": "produce",
                "topic": "bare",
                "lanes": [{"address": address, "partitions": [0]}],
                "connections": 1,
                "in_flight": workload.in_flight,
                "acks": -1,
                "batch_bytes": workload.batch_bytes,
                "record_bytes": 1_000,
                "compression": "none",
                "warm": 1,
                "is_bare": True,
            }
            with self._producer.task(**task) as ready:
                for _ in range(self._plan.runs):
                    before = used(pids).cpu_seconds
                    said = self._producer.run(seconds=self._plan.seconds, rate=None)
                    cpu = used(pids).cpu_seconds - before
                    size = said["requests"] * ready["batch_bytes"]
                    measured.note_work(
                        said["requests"], size, said["seconds"], cpu, handled=said["handled"]
                    )
        (self._directory / "bare").unlink()
        return measured

    def _transfers(self) -> Measured:
        if self._sendfile is None:
            made = sendfile_transfers(
                self._directory, size_bytes=_SENDFILE_BYTES, runs=self._plan.runs
            )
            self._sendfile = Measured(workload=_SENDFILE, target="sendfile")
            for transfer in made:
                self._sendfile.note("bytes", transfer.bytes_per_second / 1e6)
                self._sendfile.note("processor time a MB", transfer.cpu_seconds_per_byte * 1e9)
        return self._sendfile


_SENDFILE: Final = Workload(name="loopback sendfile", group="limits", kind="tail", consumers=1)


def _medians(measured: Measured) -> dict[str, float]:
    return {metric: statistics.median(values) for metric, values in measured.figures.items()}


def _named(row: Row, case: str) -> Row:
    return row_of(
        f"{LIMIT}{row.question}", case, row.unit, [row.low or 0.0, row.value, row.high or 0.0]
    )
