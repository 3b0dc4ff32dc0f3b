"""`tidemark cluster` against a broker."""

import json

from tests.cli.conftest import Command


def test_status_counts_what_there_is(command: Command, name: str) -> None:
    before = json.loads(command("cluster", "status", "-o", "json").out)
    command("topic", "create", name, "-p", "3")
    after = json.loads(command("cluster", "status", "-o", "json").out)
    assert after["topics"] == before["topics"] + 1
    assert after["partitions"] == before["partitions"] + 3
    assert (after["under_replicated"], after["leaderless"]) == (0, 0)
    (broker,) = after["brokers"]
    assert broker["controller"] is True
    assert broker["leaders"] == broker["replicas"] == after["partitions"]


def test_status_as_a_table_shows_the_brokers(command: Command) -> None:
    text = command("cluster", "status").out.decode()
    assert "CONTROLLER        1" in text
    assert "NODE-ID  ADDRESS" in text
