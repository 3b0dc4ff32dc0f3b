"""What processes use together: processor time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.cli.processes import cpu_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """By some processes together."""

    cpu_seconds: float
    resident_bytes: int
    peak_bytes: int


def used(pids: Sequence[int]) -> Used:
    memory = [_memory(pid) for pid in pids]
    return Used(
        cpu_seconds=sum(map(cpu_seconds, pids)),
        resident_bytes=sum(resident for resident, _ in memory),
        peak_bytes=sum(peak for _, peak in memory),
    )


def _memory(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return tuple(int(status[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]  # two names
