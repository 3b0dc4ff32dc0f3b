"""How much memory there is: the machine's, and what containers and limits leave of it."""

import os
import resource
from pathlib import Path

import pytest

from tidemark.broker.network import memory
from tidemark.broker.network.memory import bytes_for_clients, memory_bytes

MIB = 1024 * 1024
MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where control groups are mounted: those of version 2, and below `memory` those of 1."""
    monkeypatch.setattr(memory, "_MOUNTS", {"": tmp_path, "memory": tmp_path / "memory"})
    monkeypatch.setattr(memory, "_MEMBERSHIP", tmp_path / "membership")
    return tmp_path


def _limit(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="ascii")


@pytest.mark.parametrize(
    ("membership", "limits", "found_bytes"),
    [
        ("0::/\n", {"memory.max": "max"}, MACHINE_BYTES),
        ("0::/\n", {"memory.max": str(64 * MIB)}, 64 * MIB),
        ("0::/a/b\n", {"a/memory.max": str(32 * MIB), "a/b/memory.max": "max"}, 32 * MIB),
        ("0::/not/seen/from/here\n", {"memory.max": str(48 * MIB)}, 48 * MIB),
        ("0::/\n", {}, MACHINE_BYTES),
        (
            "4:cpu,memory:/a\n1:name=systemd:/a\n0::/\n",
            {"memory/a/memory.limit_in_bytes": str(16 * MIB)},
            16 * MIB,
        ),
        (
            "4:memory:/a\n",
            {"memory/a/memory.limit_in_bytes": "9223372036854771712"},
            MACHINE_BYTES,
        ),
    ],
)
def test_a_container_leaves_what_the_least_of_its_groups_leaves(
    groups: Path,
    membership: str,
    limits: dict[str, str],
    found_bytes: int,
) -> None:
    for name, text in limits.items():
        _limit(groups / name, text)
    (groups / "membership").write_text(membership, encoding="ascii")
    assert memory_bytes() == found_bytes


def test_a_limit_of_the_process_counts_as_well(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (80 * MIB, 80 * MIB))
    assert memory_bytes() == 80 * MIB
    assert bytes_for_clients(256 * MIB) == 20 * MIB
    assert bytes_for_clients(4 * MIB) == 4 * MIB


def test_without_control_groups_the_machine_decides(groups: Path) -> None:
    assert not (groups / "membership").exists()
    assert memory_bytes() == MACHINE_BYTES
