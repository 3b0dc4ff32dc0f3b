"""Commits of how far a stream has come, from what Spark tells listeners."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.client.blocking import BlockingClient
from tidemark.client.settings import ClientSettings
from tidemark.client.spark import GroupCommits
from tidemark.protocol.types import TopicPartition
from tidemark.testing import BlockingCluster


def told_of(listener: GroupCommits, topic: str, end: int, rows: int = 1) -> None:
    """What Spark does after a batch, of the query `copy` that joins us with another source."""
    ours = SimpleNamespace(endOffset=json.dumps({topic: {"0": end}}))
    other = SimpleNamespace(endOffset="17")
    progress = SimpleNamespace(name="copy", numInputRows=rows, batchId=3, sources=[other, ours])
    event: Any = SimpleNamespace(progress=progress)  # as far as a listener looks at it
    listener.onQueryProgress(event)


def test_the_end_of_each_batch_is_committed(
    tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    def committed(group: str) -> int | None:
        found = client.run(client.admin.list_group_offsets, group)
        return found[TopicPartition(topic, 0)].offset if found else None

    every = GroupCommits(tidemark_session.bootstrap, f"{topic}-every")
    told_of(every, topic, 5)
    assert committed(f"{topic}-every") == 5
    told_of(every, topic, 9, rows=0)
    assert committed(f"{topic}-every") == 5, "nothing was read"
    other = GroupCommits(tidemark_session.bootstrap, f"{topic}-other", query="another")
    told_of(other, topic, 5)
    assert committed(f"{topic}-other") is None


def test_what_cannot_be_committed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    settings = ClientSettings(retry_timeout_seconds=0.1)
    told_of(GroupCommits("127.0.0.1:1", "group", settings=settings), "t", 5)
    assert "group group: batch 3: " in caplog.text
