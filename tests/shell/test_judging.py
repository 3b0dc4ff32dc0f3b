"""What clients of the shell's layer saw is judged: each thing that must not be is noticed."""

from random import Random

import pytest

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import History, Kind, Outcome, Poll, Polled, Send
from tidemark.testing.checkers.transactions import Commit, Fetched, Transaction
from tidemark.testing.shell.clients import COPIES, WORDS, Clients
from tidemark.testing.shell.judging import judge
from tidemark.testing.shell.members import COPIERS, READERS, Members

_WORD = TopicPartition(WORDS, 0)
_COPY = TopicPartition(COPIES, 1)
_VALUE = b"words-0@0#copier 1"


class _Seen:
    """One word, read, copied and committed, as it should be."""

    def __init__(self) -> None:
        self.history = History(
            sends=[_send(_WORD, b"7", 0.0, Outcome.OK, (Offset(0),))],
            polls=[_poll("consumer 1", _WORD, b"7"), _poll("consumer 2", _COPY, _VALUE)],
        )
        self.final = History(polls=list(self.history.polls))
        self.members = Members(Clients("", print), Random(0))
        self.members.polled[_WORD].add(Offset(0))
        self.members.commits.append(Commit(READERS, _WORD, Offset(1), 2.0))
        self.members.fetched += [
            Fetched(each, _WORD, Offset(1), 9.0) for each in (READERS, COPIERS)
        ]
        self.transaction = Transaction(
            client="copier 1",
            started=1.0,
            ended=2.0,
            outcome=Outcome.OK,
            sends=[_send(_COPY, _VALUE, 1.0, Outcome.INFO, (Offset(0),))],
            commits=[Commit(COPIERS, _WORD, Offset(1), 1.5)],
        )
        self.members.transactions.append(self.transaction)

    def kinds(self) -> set[Kind]:
        return {each.kind for each in judge(self.history, self.final, self.members)}


@pytest.fixture
def seen() -> _Seen:
    return _Seen()


def test_what_is_as_it_should_be_is_not_found_fault_with(seen: _Seen) -> None:
    assert not seen.kinds()


def test_a_second_copy_is_noticed(seen: _Seen) -> None:
    second = _poll("reader 1", _COPY, b"words-0@0#copier 2", 1)
    seen.final.polls.append(second)
    assert Kind.REPEATED_INPUT in seen.kinds()


def test_a_copy_of_what_was_given_up_is_noticed(seen: _Seen) -> None:
    seen.transaction.outcome = Outcome.FAIL
    assert Kind.ABORTED_READ in seen.kinds()


def test_a_copy_that_is_not_there_is_noticed(seen: _Seen) -> None:
    del seen.final.polls[1]
    assert {Kind.TORN_TRANSACTION, Kind.LOST_INPUT} <= seen.kinds()


def test_a_copy_whose_commit_is_not_there_is_noticed(seen: _Seen) -> None:
    seen.members.fetched.pop()
    assert Kind.TORN_TRANSACTION in seen.kinds()


def test_a_commit_of_a_transaction_that_was_forgotten_for_a_while_is_noticed(seen: _Seen) -> None:
    seen.members.fetched.insert(0, Fetched(COPIERS, _WORD, Offset(0), 5.0))
    assert Kind.LOST_COMMIT in seen.kinds()


def test_a_members_commit_that_was_forgotten_for_a_while_is_noticed(seen: _Seen) -> None:
    seen.members.fetched.insert(0, Fetched(READERS, _WORD, Offset(0), 5.0))
    assert Kind.LOST_COMMIT in seen.kinds()


def test_a_word_that_no_member_was_given_is_noticed(seen: _Seen) -> None:
    seen.members.polled.clear()
    assert Kind.LOST_INPUT in seen.kinds()


def _send(
    where: TopicPartition, value: bytes, at: float, outcome: Outcome, offsets: tuple[Offset, ...]
) -> Send:
    return Send(
        client="somebody",
        partition=where,
        values=(value,),
        started=at,
        ended=at + 0.5,
        outcome=outcome,
        offsets=offsets,
    )


def _poll(client: str, where: TopicPartition, value: bytes, offset: int = 0) -> Poll:
    return Poll(
        client=client, started=3.0, ended=3.0, records=(Polled(where, Offset(offset), value),)
    )
