"""Whether the system tells who has a file open alone; some sandboxes do not."""

from pathlib import Path

import pytest

from tidemark.partitions.storage.os_files import OsFiles


def need_leases(folder: Path) -> None:
    """Skip the test where it does not."""
    path = folder / "lease"
    path.write_bytes(b"")
    if OsFiles().open_alone(str(path)) is None:
        pytest.skip("no leases are given here")
    path.unlink()
