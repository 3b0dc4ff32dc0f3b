"""`tidemark replica`: against one broker what is refused, against three what it does."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cli.conftest import Command
from tidemark.cli.replica.progress import Move, move_rows
from tidemark.client import OngoingReassignment, ReassignmentProgress, TopicPartition
from tidemark.protocol.types import NodeId
from tidemark.testing import BlockingCluster, open_blocking_cluster

ONE, TWO, THREE = map(NodeId, (1, 2, 3))


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, command: Command) -> Iterator[BlockingCluster]:
    """Three brokers, which `command` speaks to, with a topic whose partitions 1 and 2 hold."""
    with open_blocking_cluster(brokers=3) as cluster:
        monkeypatch.setenv("TIDEMARK_BOOTSTRAP", cluster.bootstrap)
        created = command("topic", "create", "t", "-p", "1", "-r", "1")
        assert created.status == 0, created.err
        yield cluster


def rows(command: Command, *arguments: str) -> list[dict[str, object]]:
    result = command("replica", *arguments, "-o", "json")
    assert result.status == 0, result.err
    parsed: list[dict[str, object]] = json.loads(result.out)
    return parsed


def holders(command: Command) -> list[object]:
    return [row["broker"] for row in rows(command, "list", "t")]


def test_replicas_are_added_moved_and_removed(command: Command, three: BlockingCluster) -> None:
    (first,) = holders(command)
    second, third = (node for node in (1, 2, 3) if node != first)
    planned = rows(command, "add", "t", "--broker", str(second), "--dry-run")
    assert planned == [{"topic": "t", "partition": 0, "before": [first], "after": [first, second]}]
    assert holders(command) == [first]
    rows(command, "add", "t", "--broker", str(second), "--wait")
    assert holders(command) == [first, second]
    rows(command, "move", "t", "0", "--from", str(first), "--to", str(third), "--wait")
    assert holders(command) == [third, second]
    rows(command, "remove", "t", "0", "--broker", str(third), "--wait")
    assert holders(command) == [second]
    assert rows(command, "status") == []
    for value in (b"a\n", b"b\n"):
        assert command("produce", "t", stdin=value).status == 0
    observing = rows(command, "add", "t", "0", "--broker", str(first), "--observer", "--wait")
    (row,) = (row for row in observing if row["role"] == "observer")
    assert (row["broker"], row["end_offset"]) == (first, 2)
    rows(command, "remove", "t", "0", "--broker", str(first), "--observer")
    assert holders(command) == [second]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("remove", "{t}", "0", "--broker", "1"), "the only replica of {t}-0 would go, and all"),
        (("remove", "{t}", "0", "--broker", "2"), "broker 2 holds no replica of {t}-0: those"),
        (("add", "{t}", "--broker", "1"), "broker 1 holds a replica of {t}-0 already"),
        (("add", "{t}", "--broker", "7"), "there is no broker 7, only 1"),
        (("move", "{t}", "0", "--from", "1", "--to", "1"), "broker 1 holds a replica of {t}-0"),
        (("move", "{t}", "9", "--from", "1", "--to", "2"), "there is no partition {t}-9"),
        (("cancel", "{t}", "0"), "the replicas of {t}-0 are not being moved"),
        (("list", "no-such-topic"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("list", "{t}", "9"), "there is no partition {t}-9"),
        (("status", "{t}", "9"), "there is no partition {t}-9"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    command: Command, name: str, arguments: tuple[str, ...], sentence: str
) -> None:
    command("topic", "create", name, "-p", "1")
    result = command("replica", *(each.format(t=name) for each in arguments))
    assert result.status == 1
    assert sentence.format(t=name) in result.err


def test_the_replicas_are_listed_in_yaml_as_in_json(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    listed = command("replica", "list", name, "-o", "yaml")
    assert listed.status == 0
    (row,) = yaml.safe_load(listed.out)
    assert row["role"] == "voter"


def test_a_move_that_is_under_way_says_how_far_it_is() -> None:
    ongoing = OngoingReassignment(replicas=(THREE, TWO, ONE), adding=(THREE,), removing=(ONE,))
    progress = ReassignmentProgress(
        wanted=(THREE, TWO),
        stage="copying",
        why="",
        copying_to=THREE,
        copied_bytes=100,
        remaining_bytes=900,
        bytes_per_second=300,
    )
    at = TopicPartition("t", 0)
    known, unknown = move_rows([Move(at, ongoing, progress), Move(at, ongoing, None)])
    assert (known["replicas"], known["adding"], known["removing"]) == ([3, 2], [3], [1])
    assert (known["stage"], known["copying_to"], known["left"]) == ("copying", 3, "3 s")
    assert unknown["removing"] == [1]
