"""What the command line says of topics that are observed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Command
from tidemark.testing import BlockingCluster, open_blocking_cluster


@pytest.fixture
def cluster(command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingCluster]:
    with open_blocking_cluster(brokers=3) as cluster:
        monkeypatch.setenv("TIDEMARK_BOOTSTRAP", cluster.bootstrap)
        yield cluster


@pytest.mark.usefixtures("cluster")
def test_observers_do_not_count_as_replicas(command: Command) -> None:
    assert command("topic", "create", "t", "-p", "1", "-r", "2", "--observers", "1").status == 0
    (topic,) = json.loads(command("topic", "list", "-o", "json").out)
    assert topic["replicas"] == 2
    held = json.loads(command("cluster", "status", "-o", "json").out)["brokers"]
    assert sum(row["replicas"] for row in held) == 2


@pytest.mark.usefixtures("cluster")
def test_a_topic_that_cannot_be_observed_is_said_to_be_there(command: Command) -> None:
    refused = command("topic", "create", "t", "-p", "1", "-r", "1", "--observers", "9,")
    assert (refused.status, refused.err.count("\n")) == (1, 1)
    assert "topic t is created, though not all of it is observed" in refused.err
    assert "there is no broker 9" in refused.err
    assert command("topic", "describe", "t").status == 0


@pytest.mark.usefixtures("cluster")
def test_who_only_observes_is_shown_apart_from_who_may_lead(command: Command) -> None:
    def listed(*arguments: str) -> list[dict[str, Any]]:  # Any: what JSON holds
        found: list[dict[str, Any]] = json.loads(
            command("leader", "list", "t", *arguments, "-o", "json").out
        )
        return found

    command("topic", "create", "t", "-p", "2", "-r", "1")
    assert b"OBSERVERS" not in command("leader", "list", "t").out
    (first, _) = listed()
    observer = next(node for node in (1, 2, 3) if node != first["leader"])
    command("replica", "add", "t", "0", "--broker", str(observer), "--observer", "--wait")
    (observed, other) = listed()
    assert (observed["replicas"], observed["observers"]) == ([first["leader"]], [observer])
    assert observed["preferred"] == first["leader"]
    assert other["observers"] == []
    assert b"OBSERVERS" in command("leader", "list", "t").out
    assert listed("--strayed") == []
