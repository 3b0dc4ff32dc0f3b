"""What is done again and again about hosted replicas and their files."""

from errno import EMFILE
from pathlib import Path

import pytest

from tests.broker.clusters import wait_until
from tests.broker.nodes import open_node
from tidemark.broker.metadata import upkeep
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.storage.os_files import OsFiles


async def test_files_of_a_deleted_topic_that_could_not_be_removed_are_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And are in nobody's way meanwhile."""
    sizes, left_at_refusals = OsFiles.sizes, list[int]()

    def marked() -> list[str]:
        return sorted(map(str, tmp_path.glob("*-delete")))

    def sizes_of_the_others(files: OsFiles, path: str) -> dict[str, int]:
        if path in marked()[:1] and len(left_at_refusals) < 2:
            left_at_refusals.append(len(marked()))
            raise OSError(EMFILE, "Too many open files")
        return sizes(files, path)

    monkeypatch.setattr(upkeep, "RETRY_SECONDS", 0.01)
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="t", partitions=3))
        monkeypatch.setattr(OsFiles, "sizes", sizes_of_the_others)
        await node.topics.delete(topic)
        await wait_until(lambda: len(left_at_refusals) == 2 and not marked(), seconds=10)
    assert left_at_refusals == [3, 1]
