"""What is done again and again about hosted replicas and their files."""

from errno import EMFILE
from pathlib import Path
from uuid import uuid4

import pytest

from tests.broker.clusters import wait_until
from tests.broker.nodes import open_node
from tidemark.broker.metadata import upkeep
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.replication.peer_messages import GroupBeat
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset


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


async def test_who_is_said_to_lead_what_was_deleted_is_forgotten(tmp_path: Path) -> None:
    """Its leader had not heard of that, and spoke of it once more."""
    async with open_node(tmp_path, log_retention_check_interval_ms=10) as node:
        topic = await node.topics.create(NewTopic(name="t", partitions=1))
        known = node.topics._services.driver.node._leaders.known
        gone, leads = PartitionKey(uuid4(), 0), known.get(PartitionKey(topic.id, 0)).leads
        known.hear(NodeId(7), GroupBeat(gone, Epoch(9), True, ORIGIN, Offset(0)))
        await wait_until(lambda: not known.get(gone).leads, seconds=10)
        assert known.get(PartitionKey(topic.id, 0)).leads is leads
