"""`tidemark group`, and `consume --group`, against a broker."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Command
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing import BlockingCluster


@pytest.fixture
def topic(command: Command, name: str) -> str:
    """Ten records in partition 0 of two."""
    command("topic", "create", name, "-p", "2", "-c", "retention.ms=-1")
    lines = [
        {"value": str(i), "partition": 0, "timestamp": 1_700_000_000_000 + i} for i in range(10)
    ]
    command("produce", name, "--json", stdin="\n".join(map(json.dumps, lines)).encode())
    return name


@pytest.fixture
def group(command: Command, topic: str) -> str:
    """A group that has read three of them."""
    name = f"{topic}-group"
    assert command("consume", topic, "-g", name, "--max", "3").out == b"0\n1\n2\n"
    return name


def positions(command: Command, group: str) -> dict[int, int | None]:
    document = json.loads(command("group", "describe", group, "-o", "json").out)
    return {row["partition"]: row["committed"] for row in document["partitions"]}


def test_a_group_goes_on_behind_the_last_record_it_printed(
    command: Command, topic: str, group: str
) -> None:
    assert positions(command, group)[0] == 3
    assert command("consume", topic, "-g", group, "--max", "4").out == b"3\n4\n5\n6\n"
    assert command("consume", topic, "-g", group, "--exit").out == b"7\n8\n9\n"
    assert positions(command, group)[0] == 10


def test_list_shows_state_and_protocol(command: Command, group: str) -> None:
    rows = json.loads(command("group", "list", "-o", "json").out)
    row = next(row for row in rows if row["group"] == group)
    assert (row["state"], row["protocol"]) == ("Empty", "consumer")
    assert group.encode() in command("group", "list", "--state", "Empty").out
    assert group.encode() not in command("group", "list", "--state", "Stable").out


def test_describe_shows_the_lag(command: Command, topic: str, group: str) -> None:
    text = command("group", "describe", group).out.decode()
    assert "TOTAL-LAG    7" in text
    row = next(line.split() for line in text.splitlines() if line.startswith(f"{topic} "))
    assert row == [topic, "0", "3", "10", "7", "-", "-"]


def test_what_is_not_committed_is_no_part_of_the_lag(
    command: Command, tidemark_session: BlockingCluster, topic: str, group: str
) -> None:
    def described() -> dict[str, Any]:  # Any: what JSON holds
        found: dict[str, Any] = json.loads(command("group", "describe", group, "-o", "json").out)
        return found

    assert command("group", "delete", group, "--topic", f"{topic}:1").status == 0
    with (
        open_client(tidemark_session.bootstrap) as client,
        client.consumer(topic, group=group) as consumer,
    ):
        next(iter(consumer))
        found = described()
        first, second = found["partitions"]
        assert (second["committed"], second["lag"]) == (None, None)
        assert found["total_lag"] == first["lag"] > 0
    assert command("group", "delete", group, "--topic", topic).status == 0
    assert described()["total_lag"] is None
    assert "TOTAL-LAG    -\n" in command("group", "describe", group).out.decode()


def test_records_that_were_deleted_are_not_behind_the_group(
    command: Command, topic: str, group: str
) -> None:
    command("topic", "trim", topic, "--before", "8", "--yes")
    document = json.loads(command("group", "describe", group, "-o", "json").out)
    assert document["total_lag"] == 2


def test_a_group_that_is_not_there_is_one_line(command: Command) -> None:
    for verb in (["describe"], ["delete"], ["reset", "--to", "end", "--yes"]):
        done = command("group", verb[0], "no-such-group", *verb[1:])
        assert done.status == 1
        assert done.err.count("\n") == 1, done.err


@pytest.mark.parametrize(
    ("to", "offset"),
    [
        ("beginning", 0),
        ("end", 10),
        ("5", 5),
        ("99", 10),
        ("+2", 5),
        ("-2", 1),
        ("-5", 0),
        ("@1700000000006", 6),
        ("@-1s", 10),
    ],
)
def test_reset_moves_the_group(command: Command, group: str, to: str, offset: int) -> None:
    done = command("group", "reset", group, "--to", to, "--yes", "-o", "json")
    assert done.status == 0, done.err
    row = next(row for row in json.loads(done.out) if row["partition"] == 0)
    assert (row["before"], row["after"], row["end"], row["lag"]) == (3, offset, 10, 10 - offset)
    assert positions(command, group)[0] == offset


def test_a_dry_run_moves_nothing_and_a_script_must_say_which(command: Command, group: str) -> None:
    assert command("group", "reset", group, "--to", "end", "--dry-run").status == 0
    assert command("group", "reset", group, "--to", "end").status == 2
    assert positions(command, group)[0] == 3


def test_single_partitions_can_be_moved(command: Command, topic: str, group: str) -> None:
    done = command("group", "reset", group, "--to", "7", "--topic", f"{topic}:0", "--yes")
    assert done.status == 0, done.err
    assert positions(command, group) == {0: 7, 1: 0}
    for wrong in (f"{topic}:2", f"{topic}:0-9", f"{topic}:x", f"{topic}:"):
        assert command("group", "reset", group, "--to", "1", "--topic", wrong, "--yes").status != 0
    assert positions(command, group) == {0: 7, 1: 0}


def test_a_group_with_members_is_not_moved(
    command: Command, tidemark_session: BlockingCluster, topic: str, group: str
) -> None:
    with (
        open_client(tidemark_session.bootstrap) as client,
        client.consumer(topic, group=group) as consumer,
    ):
        next(iter(consumer))
        done = command("group", "reset", group, "--to", "end", "--yes")
        assert done.status == 1
        assert "has 1 member, who would go on from where they are: stop them first" in done.err
        assert command("group", "reset", group, "--to", "end", "--dry-run").status == 0
        with pytest.raises(RequestError, match="stop them first"):
            client.run(
                client.admin.alter_group_offsets, group, {TopicPartition(topic, 0): Offset(1)}
            )
        document = json.loads(command("group", "describe", group, "-o", "json").out)
        assert "joined" in document["rebalances"][0]["why"]
        text = command("group", "describe", group).out.decode()
        assert "LAST REBALANCE" in text
        assert " joined" in text


def test_a_group_can_be_made_by_naming_a_topic(command: Command, topic: str) -> None:
    name = f"{topic}-new"
    assert command("group", "reset", name, "--to", "4", "--topic", topic, "--yes").status == 0
    assert command("consume", topic, "-g", name, "--max", "1").out == b"4\n"


def test_a_group_has_configs_of_its_own(command: Command, group: str) -> None:
    def configs() -> dict[str, str]:
        document = json.loads(command("group", "describe", group, "-o", "json").out)
        return {e["name"]: e["value"] for e in document["configs"] if e["source"] == "group"}

    setting = "consumer.session.timeout.ms=60000"
    assert command("group", "alter", group, "-c", setting, "--dry-run").status == 0
    assert configs() == {}
    assert command("group", "alter", group, "-c", setting).status == 0
    assert configs() == {"consumer.session.timeout.ms": "60000"}
    table = command("group", "describe", group).out.decode()
    assert "consumer.session.timeout.ms  60000" in table
    refused = command("group", "alter", group, "-c", "nosuch=1")
    assert (refused.status, refused.err.count("\n")) == (1, 1)
    assert "nosuch" in refused.err
    assert command("group", "alter", group, "-d", "consumer.session.timeout.ms").status == 0
    assert configs() == {}


def test_commits_for_a_topic_are_deleted_and_the_group_stays(
    command: Command, topic: str, group: str
) -> None:
    for nothing in ("nosuch", f"{topic}:9"):
        refused = command("group", "delete", group, "--topic", nothing)
        assert refused.status == 1
        assert f"group {group} has no commits for {nothing}" in refused.err
    assert positions(command, group)[0] == 3
    assert command("group", "delete", group, "--topic", f"{topic}:0-1").status == 0
    assert positions(command, group) == {}
    assert command("consume", topic, "-g", group, "--max", "1").out == b"0\n"


def test_a_deleted_group_is_gone(command: Command, group: str) -> None:
    assert command("group", "delete", group).status == 0
    assert group.encode() not in command("group", "list").out
