"""How much memory this process may have, and what of it clients may fill."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_FILES: Final = {"": "memory.max", "memory": "memory.limit_in_bytes"}
"""Where a group's limit stands, by the controller's name: of control groups' version 2, and 1."""
_MOUNTS: Final = {"": Path("/sys/fs/cgroup"), "memory": Path("/sys/fs/cgroup/memory")}
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_SHARE: Final = 4


def bytes_for_clients(wanted: int) -> int:
    """So many, but no more than a quarter of the memory that this process may have.

    In a container with little of it, clients would else have the kernel end the broker.
    """
    return min(wanted, memory_bytes() // _SHARE)


def memory_bytes() -> int:
    """The least of what the machine has and what limits say: the process's and its containers'."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        allowed, _ = resource.getrlimit(kind)
        if allowed != resource.RLIM_INFINITY:
            limits.append(allowed)
    with suppress(OSError):
        limits.extend(_group_limits(_MEMBERSHIP.read_text(encoding="utf-8")))
    return min(limits)


def _group_limits(membership: str) -> Iterator[int]:
    """The limits of the groups that the process is in, and of those around them.

    A container often sees its own group as the root, and its name as it is outside: then nothing
    is there by that name, and the root says it.
    """
    for line in membership.splitlines():
        _, controllers, name = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in _FILES:
                group = Path(name.lstrip("/"))
                for each in (group, *group.parents):
                    file = _MOUNTS[controller] / each / _FILES[controller]
                    with suppress(OSError, ValueError):  # not there, or "max"
                        yield int(file.read_text(encoding="ascii"))
