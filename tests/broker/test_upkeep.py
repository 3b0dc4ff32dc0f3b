"""What is done again and again about hosted replicas and their files."""

from errno import EMFILE
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.nodes import open_node
from tidemark.broker import steps
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


async def test_others_have_their_turn_while_it_is_asked_of_all_groups_whether_they_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", 10)
    left = list[int]()
    async with open_node(tmp_path) as node:
        services = node.topics._services
        known = services.driver.node.known
        before = len(known.heard_of())

        async def look() -> None:
            while True:
                left.append(len(known.heard_of()) - before)
                await trio.lowlevel.checkpoint()

        for number in range(100):
            key = PartitionKey(uuid4(), number)
            known.hear(NodeId(7), GroupBeat(key, Epoch(9), True, ORIGIN, Offset(0)))
        async with trio.open_nursery() as looks:
            looks.start_soon(look)
            for _ in range(2):
                await upkeep.forget_gone(services, lambda: node.cluster.state)
            looks.cancel_scope.cancel()
        assert len(known.heard_of()) == before
    assert len(set(left)) > 5, "some at a time"
