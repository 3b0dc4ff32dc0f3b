"""`tidemark topic` against a broker."""

import json

import pytest
import yaml

from tests.cli.conftest import Command


def described(command: Command, name: str) -> dict[str, object]:
    document = json.loads(command("topic", "describe", name, "-o", "json").out)
    assert isinstance(document, dict)
    return document


def configs(command: Command, name: str) -> dict[str, str]:
    """Those that are the topic's own."""
    entries = described(command, name)["configs"]
    assert isinstance(entries, list)
    return {entry["name"]: entry["value"] for entry in entries if entry["source"] == "topic"}


def test_create_says_nothing_to_a_script_and_the_topic_is_there(
    command: Command, name: str
) -> None:
    done = command("topic", "create", name, "-p", "3", "-c", "flush=os", "-c", "retention.ms=1000")
    assert (done.status, done.out, done.err) == (0, b"", "")
    document = described(command, name)
    assert document["name"] == name
    assert isinstance(document["partitions"], list)
    assert [p["partition"] for p in document["partitions"]] == [0, 1, 2]
    assert configs(command, name) == {"flush": "os", "retention.ms": "1000"}


def test_a_topic_is_created_twice_only_if_that_is_said_to_be_well(
    command: Command, name: str
) -> None:
    command("topic", "create", name, "-p", "1")
    again = command("topic", "create", name, "-p", "1")
    assert again.status == 1
    assert "TOPIC_ALREADY_EXISTS" in again.err
    assert command("topic", "create", name, "--if-not-exists").status == 0


def test_a_topic_that_is_not_there_is_deleted_only_if_that_is_said_to_be_well(
    command: Command, name: str
) -> None:
    assert command("topic", "delete", name).status == 1
    other = f"{name}-other"
    command("topic", "create", other, "-p", "1")
    assert command("topic", "delete", name, other, "--if-exists").status == 0
    assert command("topic", "describe", other).status == 1


def test_a_dry_run_creates_nothing(command: Command, name: str) -> None:
    assert command("topic", "create", name, "--dry-run").status == 0
    assert command("topic", "describe", name).status == 1


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [("no.such.config=1", "no.such.config"), ("retention.ms=soon", "retention.ms")],
)
def test_a_config_that_cannot_be_is_one_line(
    command: Command, name: str, setting: str, complaint: str
) -> None:
    done = command("topic", "create", name, "-p", "1", "-c", setting)
    assert done.status == 1
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_list_in_every_form(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "2")
    table = command("topic", "list").out.decode().splitlines()
    assert table[0].split() == ["NAME", "PARTITIONS", "REPLICAS"]
    assert [name, "2", "1"] in [line.split() for line in table]
    rows = json.loads(command("topic", "list", "-o", "json").out)
    row = next(row for row in rows if row["name"] == name)
    assert (row["partitions"], row["replicas"], row["internal"]) == (2, 1, False)
    assert yaml.safe_load(command("topic", "list", "-o", "yaml").out) == rows
    assert row["topic_id"] in command("topic", "list", "-o", "wide").out.decode()


@pytest.mark.parametrize(
    ("flush", "promise"),
    [("commit", "synced to disk before it is acknowledged"), ("os", "not a loss of power")],
)
def test_describe_says_in_words_what_an_acknowledged_record_survives(
    command: Command, name: str, flush: str, promise: str
) -> None:
    command("topic", "create", name, "-p", "1", "-c", f"flush={flush}")
    text = command("topic", "describe", name).out.decode()
    assert promise in text
    assert f"(flush={flush})" in text


def test_describe_shows_each_partitions_leader_epoch_and_extent(
    command: Command, name: str
) -> None:
    command("topic", "create", name, "-p", "1")
    command("produce", name, stdin=b"a\nb\n")
    command("topic", "trim", name, "--before", "1", "--yes")
    lines = command("topic", "describe", name).out.decode().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("PARTITION "))
    shown = dict(zip(lines[at].split(), lines[at + 1].split(), strict=True))
    assert shown["LEADER"] == "1"
    assert int(shown["EPOCH"]) >= 0
    assert (shown["START"], shown["HIGH-WATERMARK"]) == ("1", "2")


def test_wide_shows_the_configs_that_are_default_too(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    assert b"segment.bytes" not in command("topic", "describe", name).out
    assert b"segment.bytes" in command("topic", "describe", name, "-o", "wide").out


def test_alter_changes_what_is_named_and_leaves_the_rest(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1", "-c", "flush=os", "-c", "retention.ms=1000")
    assert command("topic", "alter", name, "-c", "retention.bytes=5", "-d", "flush").status == 0
    assert configs(command, name) == {"retention.ms": "1000", "retention.bytes": "5"}
    assert command("topic", "alter", name, "-c", "retention.bytes=6", "--dry-run").status == 0
    assert configs(command, name)["retention.bytes"] == "5"


@pytest.mark.parametrize("how", [["--add", "2"], ["--total", "3"]])
def test_partitions_are_added(command: Command, name: str, how: list[str]) -> None:
    command("topic", "create", name, "-p", "1")
    assert command("topic", "add-partitions", name, *how).status == 0
    partitions = described(command, name)["partitions"]
    assert isinstance(partitions, list)
    assert len(partitions) == 3


def test_a_topic_does_not_shrink(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "3")
    assert "INVALID_PARTITIONS" in command("topic", "add-partitions", name, "--total", "2").err


def test_trim_shows_what_goes_and_asks_for_a_word(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    command("produce", name, stdin=b"a\nb\nc\n")
    looked = command("topic", "trim", name, "--before", "-1", "--dry-run")
    assert looked.status == 0
    assert looked.out.decode().split()[-5:] == ["0", "0", "2", "3", "2"]
    refused = command("topic", "trim", name, "--before", "-1")
    assert refused.status == 2
    assert "say --yes" in refused.err
    assert command("consume", name, "--exit").out == b"a\nb\nc\n"
    assert command("topic", "trim", name, "--before", "-1", "--yes").status == 0
    assert command("consume", name, "--exit").out == b"c\n"


def test_trim_knows_which_partitions_there_are(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    done = command("topic", "trim", name, "--before", "end", "-p", "7", "-p", "5", "--yes")
    assert done.status == 1
    assert f"{name} has no partition 5, 7" in done.err


def test_each_partition_that_cannot_be_trimmed_is_named(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "2", "-c", "cleanup.policy=compact")
    for partition in "01":
        command("produce", name, "-p", partition, "-k", "key", stdin=b"a\nb\n")
    done = command("topic", "trim", name, "--before", "1", "--yes")
    assert done.status == 1
    assert done.err.startswith(f"tidemark: POLICY_VIOLATION: {name}-0")
    assert f"; POLICY_VIOLATION: {name}-1" in done.err


def test_deleted_topics_are_gone(command: Command, name: str) -> None:
    command("topic", "create", name, f"{name}-b")
    assert command("topic", "delete", name, f"{name}-b").status == 0
    assert name.encode() not in command("topic", "list").out
    unknown = f"UNKNOWN_TOPIC_OR_PARTITION: there is no topic {name}"
    assert unknown in command("topic", "delete", name).err
    assert unknown in command("topic", "describe", name).err
