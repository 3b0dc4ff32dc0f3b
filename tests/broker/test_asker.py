"""Who has asked a coordinator, and what the answer does to nobody else."""

import pytest

from tidemark.broker.coordinating.asker import Asker
from tidemark.partitions.state_machines.groups.requests import CommitAnswer
from tidemark.protocol.errors import ErrorCode

Outcome = tuple[ErrorCode | None, Exception | None]


def heard(asker: Asker[CommitAnswer, ErrorCode]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    asker.pending.deliver_to(lambda *outcome: outcomes.append(outcome))
    return outcomes


def test_an_answer_is_given_once() -> None:
    asker = Asker(CommitAnswer, lambda answer: answer.error)
    outcomes = heard(asker)
    asker.take(CommitAnswer())
    with pytest.raises(AssertionError, match="answered once"):
        asker.take(CommitAnswer())
    assert outcomes == [(ErrorCode.NONE, None)]


def test_an_answer_that_cannot_be_said_is_this_ones_failure() -> None:
    """Who gives it out has more of them, and what the machine has decided to write."""
    why = ValueError("our bug")

    def respond(_: CommitAnswer) -> ErrorCode:
        raise why

    asker = Asker(CommitAnswer, respond)
    outcomes = heard(asker)
    asker.take(CommitAnswer())
    assert outcomes == [(None, why)]
