"""`tidemark cluster` against a broker."""

import json

import pytest
from confluent_kafka import Producer

from tests.cli.conftest import Command
from tests.cli.health import ONE, TWO, facts, partition
from tidemark.cli.health import ClusterFacts
from tidemark.client import Client


def test_status_shows_what_there_is(command: Command, name: str) -> None:
    before = json.loads(command("cluster", "status", "-o", "json").out)
    command("topic", "create", name, "-p", "3")
    result = command("cluster", "status", "-o", "json")
    after = json.loads(result.out)
    assert (result.status, after["health"]) == (0, "healthy")
    assert after["topics"] == before["topics"] + 1
    assert len(after["partitions"]) == len(before["partitions"]) + 3
    assert (after["under_replicated"], after["leaderless"]) == (0, 0)
    (broker,) = after["brokers"]
    assert (broker["controller"], broker["up"], broker["lag"]) == (True, True, 0)
    assert broker["leaders"] == broker["replicas"] == len(after["partitions"])
    assert after["metadata"]["voters"] == [broker["node_id"]]


def test_each_partition_says_its_leader_and_how_far_its_replicas_are(
    command: Command, name: str
) -> None:
    command("topic", "create", name, "-p", "1")
    command("produce", name, stdin=b"one\ntwo\n")
    status = json.loads(command("cluster", "status", "-o", "json").out)
    (row,) = [row for row in status["partitions"] if row["topic"] == name]
    assert row["leader"] == 1
    assert row["replicas"] == row["in_sync"] == [1]
    assert (row["high_watermark"], row["lag"], row["trouble"]) == (2, {"1": 0}, None)


def test_the_table_has_the_brokers_and_wide_all_partitions(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    text = command("cluster", "status").out.decode()
    assert text.startswith("HEALTH            healthy\n")
    assert "NODE-ID  ADDRESS" in text
    assert name not in text
    assert name in command("cluster", "status", "-o", "wide").out.decode()


def test_trouble_is_shown_and_is_the_exit_status(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gather(_: Client) -> ClusterFacts:
        return facts(partition(0, leader=None, in_sync=(TWO,)), partition(1), controller=ONE)

    monkeypatch.setattr("tidemark.cli.cluster.gather", gather)
    result = command("cluster", "status")
    assert result.status == 3
    assert result.out.startswith(b"HEALTH            1 of 2 partitions without a leader, ")
    *_, last = result.out.decode().splitlines()
    assert last.split()[:3] == ["t", "0", "-"]
    assert last.endswith("no leader")


def test_brokers_of_another_make_are_described_as_far_as_they_say(command: Command) -> None:
    mock = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "", "log_level": 0})
    mock.produce("t", b"value")
    mock.flush(5)
    (address, *_) = (f"{b.host}:{b.port}" for b in mock.list_topics(timeout=5).brokers.values())
    result = command("cluster", "status", "-o", "json", "--bootstrap", address)
    status = json.loads(result.out)
    assert (result.status, status["health"]) == (0, "healthy"), status
    assert [broker["up"] for broker in status["brokers"]] == [True] * 3
    assert status["metadata"] is None
    assert {row["lag"] for row in status["partitions"]} == {None}


def test_where_nobody_answers_the_status_is_a_failure(command: Command) -> None:
    result = command("cluster", "status", "--bootstrap", "127.0.0.1:1")
    assert (result.status, result.out) == (1, b"")
    assert "cannot connect" in result.err
