"""What the command line says of topics that are observed."""

import json
from collections.abc import Iterator

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
