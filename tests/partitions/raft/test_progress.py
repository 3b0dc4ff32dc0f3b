"""What a leader takes to be at a follower, whatever order its answers come in."""

from tidemark.partitions.raft.messages import AppendResponse
from tidemark.partitions.raft.progress import Progress
from tidemark.protocol.types import Epoch, Offset, Position


def at(offset: int) -> Position:
    return Position(Epoch(0), Offset(offset))


def answer(prev: int, match: int, *, in_doubt: bool = False) -> AppendResponse:
    return AppendResponse(
        Epoch(0), at(prev), at(match), is_clean=not in_doubt, life=3, in_doubt=in_doubt
    )


def test_what_is_sent_next_does_not_go_back_behind_what_is_known_to_be_there() -> None:
    """1. A run is sent. 2. The follower makes a part of it durable, and says so: to an earlier
    request, which comes first, of more; to this one, of less."""
    progress = Progress(at(5))
    progress.sent(at(10), 100)
    assert progress.succeeded(at(5), at(10))
    progress.sent(at(30), 100)
    assert progress.succeeded(at(5), at(23)), "a late one"
    assert not progress.succeeded(at(10), at(21)), "a short one"
    assert (progress.held.match, progress.next) == (at(23), at(23))


def test_who_is_known_to_hold_nothing_is_sent_again_what_was_lost_first() -> None:
    progress = Progress(at(5))
    progress.sent(at(10), 100)
    progress.sent(at(20), 100)
    progress.restart()
    assert (progress.next, progress.has_in_flight) == (at(5), False)
    progress.restart()
    assert progress.next == at(5)


def test_a_doubt_that_has_not_ended_where_it_is_is_not_over() -> None:
    """1. A leader ends a follower's doubt. 2. The follower says that it has heard so; that is not
    durable there. 3. It says that it is in doubt: what it holds counts for nothing again."""
    progress = Progress(at(5))
    progress.held.begin_doubt(3, at(5))
    progress.held.end_doubt(at(8))
    progress.sent(at(8), 100)
    assert progress.hear(answer(5, 8), at(8))
    assert progress.succeeded(at(5), at(8))
    assert progress.held.counted == at(8)
    progress.sent(at(9), 100)
    assert progress.hear(answer(8, 9, in_doubt=True), at(9))
    assert progress.held.clean_at == at(9)
    progress.succeeded(at(8), at(8))
    assert progress.held.counted < at(8)


def test_a_doubt_that_an_earlier_leadership_has_ended_is_over() -> None:
    progress = Progress(at(5))
    progress.held.begin_doubt(3, at(5))
    progress.sent(at(8), 100)
    assert progress.hear(answer(5, 8), at(8))
    assert (progress.held.is_doubtful, progress.held.clean_at) == (False, None)
