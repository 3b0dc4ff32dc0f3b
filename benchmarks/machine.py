"""The machine that benchmarks run on: what it is, how it is made warm, and what is checked out."""

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Final

_CONGESTION_CONTROL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def machine() -> dict[str, str]:
    """What the figures were measured on, as far as it can be read."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "congestion_control": _CONGESTION_CONTROL.read_text().strip(),
        "python": platform.python_version(),
        "loop": f"{_loop_seconds():.2f} s",
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _loop_seconds() -> float:
    """How long three million steps of a loop take, at best: as much the interpreter's doing, which
    may have been built with a profile of itself or without, as the processor's."""
    best = float("inf")
    for _ in range(3):
        started, total = time.perf_counter(), 0
        for number in range(3_000_000):
            total += number
        best = min(best, time.perf_counter() - started)
    return best


def warm_page_cache(directory: Path, size_bytes: int) -> None:
    """Write and delete a file of `size_bytes`.

    On a virtual machine the first touch of memory goes through the host and is ten times slower;
    without this the first benchmark would measure that.
    """
    path = directory / "warm"
    block = bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes >> 20):
            file.write(block)
    path.unlink()


def with_bytecode(directory: Path) -> dict[str, str]:
    """The environment of a broker that is installed: compiled, by the first start at the latest.

    Where Python is told to write no bytecode, as in many containers, every start of a checkout
    compiles all modules anew, and that is half of it.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(directory)}


def commit() -> str:
    """The short name of the commit that is checked out, or `unknown` outside a checkout."""
    result = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return result.stdout.strip() or "unknown"
