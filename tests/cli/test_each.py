"""Several names in one command: what became of each."""

from collections.abc import Sequence

import click
import pytest

from tests.cli.conftest import Command
from tidemark.cli.each import do_each
from tidemark.protocol.errors import ErrorCode, RequestError

REFUSED = RequestError(ErrorCode.INVALID_CONFIG, "topic b: flush: neither os nor commit")
NO_ANSWER = RequestError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")


async def tried(names: Sequence[str], failing: dict[str, Exception]) -> list[str]:
    """Which were, where these fail."""
    found: list[str] = []

    async def do(name: str) -> str:
        found.append(name)
        if name in failing:
            raise failing[name]
        return f"created {name}"

    if failing:
        with pytest.raises(click.exceptions.Exit) as caught:
            await do_each(names, do)
        assert caught.value.exit_code == 1
        assert isinstance(caught.value.__cause__, ExceptionGroup)
        assert list(caught.value.__cause__.exceptions) == list(failing.values())
    else:
        await do_each(names, do)
    return found


async def test_where_all_is_done_nothing_is_said_to_a_script(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await tried("abc", {}) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


async def test_where_something_fails_all_is_tried_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await tried("abc", {"b": REFUSED}) == ["a", "b", "c"]
    assert capsys.readouterr().err.splitlines() == [
        "created a",
        f"tidemark: {REFUSED}",
        "created c",
    ]


@pytest.mark.parametrize("failure", [NO_ANSWER, ConnectionRefusedError("nobody is there")])
async def test_a_cluster_that_does_not_answer_is_not_asked_for_the_others(
    capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    assert await tried("abcd", {"b": failure}) == ["a", "b"]
    created, failed, left = capsys.readouterr().err.splitlines()
    assert created == "created a"
    assert str(failure) in failed
    assert left == "tidemark: not tried: c, d"
    assert await tried("b", {"b": failure}) == ["b"]
    assert "not tried" not in capsys.readouterr().err


def test_a_topic_that_is_there_does_not_keep_others_from_being_created(
    command: Command, name: str
) -> None:
    first, there, last = (f"{name}-{each}" for each in ("a", "b", "c"))
    command("topic", "create", there, "-p", "1")
    done = command("topic", "create", first, there, last, "-p", "1")
    assert (done.status, done.out) == (1, b"")
    created, failed, also = done.err.splitlines()
    assert (created, also) == (f"created {first}", f"created {last}")
    assert failed.startswith(f"tidemark: TOPIC_ALREADY_EXISTS: there is a topic {there}")
    assert command("topic", "describe", last).status == 0


def test_a_topic_that_is_not_there_does_not_keep_others_from_being_deleted(
    command: Command, name: str
) -> None:
    command("topic", "create", name, "-p", "1")
    done = command("topic", "delete", f"{name}-a", name, f"{name}-b")
    assert done.status == 1
    assert done.err.splitlines() == [
        f"tidemark: UNKNOWN_TOPIC_OR_PARTITION: there is no topic {name}-a",
        f"deleted {name}",
        f"tidemark: UNKNOWN_TOPIC_OR_PARTITION: there is no topic {name}-b",
    ]


def test_of_several_groups_those_that_are_there_are_deleted(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    groups = [f"{name}-{each}" for each in ("a", "b")]

    def commit() -> None:
        for group in groups:
            command("group", "reset", group, "--to", "end", "--topic", name, "--yes")

    commit()
    done = command("group", "delete", groups[0], "nosuch", groups[1], "--topic", name)
    assert (done.status, done.err.count("\n")) == (1, 3)
    assert f"{groups[1]} has no commits any more for {name}-0" in done.err
    commit()  # a group of commits alone is gone with them
    done = command("group", "delete", groups[0], "nosuch", groups[1])
    assert (done.status, done.err.count("\n")) == (1, 3)
    assert "there is no group nosuch" in done.err
    assert f"deleted {groups[1]}" in done.err


def test_verbose_shows_where_each_failure_came_from(command: Command, name: str) -> None:
    done = command("-v", "topic", "delete", f"{name}-a", f"{name}-b")
    assert (done.status, done.err.count("Traceback")) == (1, 2)
    assert done.err.count("there is no topic") == 4  # a line and its traceback, each
