"""A disk whose power fails keeps what was synced, and any part of the rest."""

from pathlib import Path
from random import Random

import pytest

from tidemark.testing.shell.disks import Disk


@pytest.mark.parametrize("seed", range(20))
def test_what_was_synced_survives(tmp_path: Path, seed: int) -> None:
    disk = _disk(tmp_path, seed)
    file = disk.create(f"{disk.data}/log")
    file.pwrite(b"synced", 0)
    file.sync()
    disk.sync_directory(str(disk.data))
    file.pwrite(b", or not", 6)
    disk.lose_power()
    file.pwrite(b"SYNCED", 0)
    file.sync()
    disk.restore()
    found = (disk.data / "log").read_bytes()
    assert found.startswith(b"synced")
    assert set(found[6:]) <= {*b", or not", 0}
    assert disk.open(f"{disk.data}/log").pread(100, 0) == found


def test_what_was_not_synced_may_be_there_or_not(tmp_path: Path) -> None:
    found = set()
    for seed in range(40):
        disk = _disk(tmp_path / str(seed), seed)
        disk.create(f"{disk.data}/log").pwrite(b"all", 0)
        disk.lose_power()
        disk.restore()
        path = disk.data / "log"
        found.add(path.read_bytes() if path.exists() else None)
    assert {None, b"", b"all"} <= found


def test_a_name_that_was_not_synced_may_be_the_old_one(tmp_path: Path) -> None:
    found = set()
    for seed in range(40):
        disk = _disk(tmp_path / str(seed), seed)
        disk.make_directory(f"{disk.data}/old")
        disk.sync_directory(str(disk.data))
        disk.rename(f"{disk.data}/old", f"{disk.data}/new")
        disk.lose_power()
        disk.restore()
        found.add(tuple(disk.subdirectories(str(disk.data))))
    assert found == {("old",), ("new",)}


def test_the_state_is_what_it_was_when_the_power_failed(tmp_path: Path) -> None:
    disk = _disk(tmp_path, 0)
    (disk.data / "state.db").write_bytes(b"then")
    (disk.data / "lock").touch()
    disk.lose_power()
    (disk.data / "state.db").write_bytes(b"too late")
    (disk.data / "state.db-wal").write_bytes(b"too late")
    disk.restore()
    assert (disk.data / "state.db").read_bytes() == b"then"
    assert sorted(path.name for path in disk.data.iterdir()) == ["lock", "state.db"]


def _disk(path: Path, seed: int) -> Disk:
    path.mkdir(exist_ok=True)
    disk = Disk(path, Random(seed))
    disk.make_directory(str(disk.data))
    disk.sync_directory(str(path))
    return disk
