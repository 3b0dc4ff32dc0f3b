"""The lab's disks lose what a power cut takes, and nothing else."""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.commands import ToolFailed
from tests.chaos.disks import Disk, open_disks, sync_directory
from tests.chaos.faults.disks import synced_nothing

DISK_BYTES = 16 << 20


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr("tests.chaos.disks._DISK_BYTES", DISK_BYTES)
    with open_disks(tmp_path, [1]) as disks:
        if not disks[1].can_fail:
            pytest.skip("this machine lets nobody mount a file")
        yield disks[1]


def write(path: Path, data: bytes, *, syncs: bool) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(data)
        if syncs:
            os.fsync(file.fileno())


def test_a_power_cut_loses_what_was_not_synced_and_nothing_else(disk: Disk) -> None:
    write(disk.path / "synced", b"kept", syncs=True)
    sync_directory(disk.path)
    write(disk.path / "cached", b"lost", syncs=False)
    with (disk.path / "synced").open("ab", buffering=0) as file:
        file.write(b" and more")
    disk.cut_power()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write(disk.path / "after", b"", syncs=False)
    disk.restore()
    assert (disk.path / "synced").read_bytes() == b"kept"
    assert not (disk.path / "cached").exists()


def test_a_disk_that_somebody_else_keeps_mounted_does_not_pass_for_one_with_power(
    disk: Disk,
) -> None:
    with subprocess.Popen(["unshare", "--mount", "sleep", "60"]) as other:
        try:
            ours = os.readlink("/proc/self/ns/mnt")
            while os.readlink(f"/proc/{other.pid}/ns/mnt") == ours:
                time.sleep(0.01)
            disk.cut_power()
            with pytest.raises(ToolFailed, match="mounted elsewhere"):
                disk.restore()
        finally:
            other.kill()


def test_a_full_disk_has_no_byte_left_until_it_is_freed(disk: Disk) -> None:
    disk.fill()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write(disk.path / "more", b"x", syncs=True)
    disk.free()
    write(disk.path / "more", b"x", syncs=True)


def test_a_write_that_syncs_nothing_is_no_sync_that_fails() -> None:
    written = '7 pwritev2(18, [{iov_base="TMJ1"...}], 1, 4096, 0) = -1 EIO (I/O) (INJECTED)'
    synced = written.replace(", 0) =", ", RWF_DSYNC) =")
    flushed = "7 fdatasync(18) = -1 EIO (Input/output error) (INJECTED)"
    assert synced_nothing(f"7 fdatasync(18) = 0\n{written}\n")
    assert not synced_nothing(f"{written}\n{synced}\n")
    assert not synced_nothing(f"{written}\n{flushed}\n")
