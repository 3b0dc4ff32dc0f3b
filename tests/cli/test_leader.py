"""`tidemark leader`. What it does to leaders is tested where there are several brokers."""

import json

import pytest

from tests.cli.conftest import Command
from tidemark.cli.leader import _elected, _move_row
from tidemark.client import ElectedLeader, ErrorCode, MovedLeader, RequestError, TopicPartition
from tidemark.protocol.types import NodeId

AT = TopicPartition("t", 0)


def test_list_shows_who_leads_and_who_is_to(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "2")
    (first, second) = json.loads(command("leader", "list", name, "-o", "json").out)
    assert (first["partition"], second["partition"]) == (0, 1)
    assert (first["leader"], first["preferred"], first["replicas"]) == (1, 1, [1])
    assert "PREFERRED" in command("leader", "list", name).out.decode()
    assert json.loads(command("leader", "list", name, "--strayed", "-o", "json").out) == []
    assert json.loads(command("leader", "list", name, "--broker", "2", "-o", "json").out) == []


def test_a_move_to_who_leads_already_is_no_error(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    for flags, outcome in (((), "led already"), (("--dry-run",), "leads already")):
        result = command("leader", "move", name, "0", "--to", "1", *flags, "-o", "json")
        assert result.status == 0
        (row,) = json.loads(result.out)
        assert (row["leader"], row["outcome"], row["attempts"]) == (1, outcome, 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("0", "--to", "7"), "there is no broker 7, only 1"),
        (("9", "--to", "1"), "there is no partition {name}-9"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    command: Command, name: str, arguments: tuple[str, ...], sentence: str
) -> None:
    command("topic", "create", name, "-p", "1")
    for flags in ((), ("--dry-run",)):
        result = command("leader", "move", name, *arguments, *flags)
        assert result.status == 1
        assert sentence.format(name=name) in result.err
        assert result.err.count(f"{name}-9") <= 1


def test_elect_says_what_was_needed(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    result = command("leader", "elect", name, "-o", "json")
    assert result.status == 0
    assert json.loads(result.out) == [{"topic": name, "partition": 0, "outcome": "led already"}]
    everything = command("leader", "elect", "-o", "json")
    assert (everything.status, json.loads(everything.out)) == (0, [])


def test_rows_say_what_became_of_it() -> None:
    moved = MovedLeader(
        partition=AT,
        target=NodeId(2),
        leader=NodeId(2),
        attempts=1,
        catch_up_seconds=0.05,
        pause_seconds=0.0123,
    )
    row = _move_row(moved, dry_run=False)
    assert (row["outcome"], row["catch_up_ms"], row["held_ms"]) == ("moved", 50.0, 12.3)
    refused = RequestError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "broker 3 is not alive")
    assert _elected(ElectedLeader(partition=AT, error=refused)) == "broker 3 is not alive"
    assert _elected(ElectedLeader(partition=AT, error=None)) == "moved"
