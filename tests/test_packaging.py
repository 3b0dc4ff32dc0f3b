"""The folders at the top are the packages of `tidemark`."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ["broker", "partitions", "protocol", "client", "testing", "cli"]


@pytest.mark.parametrize("room", ROOMS)
def test_each_link_leads_to_the_folder_of_its_name(room: str) -> None:
    link = ROOT / "src" / "tidemark" / room
    assert link.is_symlink()
    assert link.resolve() == ROOT / room


def test_only_the_package_and_sparks_door_to_it_are_shipped() -> None:
    shipped = {
        path.name for path in (ROOT / "src").iterdir() if not path.name.endswith(".egg-info")
    }
    assert shipped == {"tidemark", "pyspark_tidemark"}
