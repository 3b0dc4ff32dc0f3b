"""`tidemark cluster` against a broker."""

import json

from tests.cli.conftest import Command


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
