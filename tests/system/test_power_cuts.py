"""What power cuts leave of segments that are written over the files of old ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.disks import open_disks
from tests.recycling import need_recycling
from tests.system.power_cuts import Written


@pytest.mark.parametrize("flush", ["commit", "os"])
def test_nothing_old_comes_back(tmp_path: Path, flush: str) -> None:
    need_disk_of_its_own(tmp_path)
    script = (sys.executable, "-m", "tests.system.power_cuts", flush, "1", "4")
    # With a namespace of its own, for others mount disks at the same time.
    done = subprocess.run(
        ["unshare", "--mount", *script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    used_again = int(done.stdout.split()[0])
    assert used_again


def need_disk_of_its_own(folder: Path) -> None:
    """Skip the test where nobody can mount a file, or be told of leases."""
    with open_disks(folder, [1]) as disks:
        if not disks[1].can_fail:
            pytest.skip("this machine lets nobody mount a file")
        need_recycling(disks[1].path)


def test_values_of_two_numbers_are_not_alike() -> None:
    """Though as long as each other, so that an old batch may lie where a new one ends."""
    written = Written(is_synced=True)
    assert written.value(7) == written.value(7) != written.value(12)
    assert len(written.value(7)) == len(written.value(12))
