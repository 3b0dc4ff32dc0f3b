"""What a replica without room hears: all but records."""

from collections.abc import Callable

import pytest

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.messages import AppendRequest, Ballot, PullResponse, VoteRequest
from tidemark.partitions.replication.out_of_room import without_records
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

ONE = NodeId(1)
FIRST = EpochStart(Epoch(1), Offset(0), ONE, Configuration((ONE,), ()))
SECOND = EpochStart(Epoch(2), Offset(2), ONE, Configuration((ONE,), ()))
RECORDS = Run(Epoch(1), Offset(0), Offset(2), b"")


def append(*entries: Entry) -> AppendRequest:
    return AppendRequest(Epoch(2), ORIGIN, entries, ORIGIN)


def pulled(*entries: Entry) -> PullResponse:
    return PullResponse(Epoch(2), ORIGIN, entries, ORIGIN)


@pytest.mark.parametrize("made", [append, pulled])
def test_epochs_are_heard_up_to_the_first_records(
    made: Callable[..., AppendRequest | PullResponse],
) -> None:
    assert without_records(made(FIRST)) == made(FIRST)
    assert without_records(made(FIRST, RECORDS, SECOND)) == made(FIRST)


@pytest.mark.parametrize("made", [append, pulled])
def test_records_alone_are_lost_and_do_not_become_a_probe(
    made: Callable[..., AppendRequest | PullResponse],
) -> None:
    assert without_records(made(RECORDS)) is None
    assert without_records(made(RECORDS, SECOND)) is None


def test_what_has_no_entries_is_heard() -> None:
    vote = VoteRequest(Epoch(2), Ballot.REAL, ORIGIN)
    for message in (append(), pulled(), vote):
        assert without_records(message) is message
