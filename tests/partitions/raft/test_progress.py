"""What a leader takes to be at a follower, whatever order its answers come in."""

from tidemark.partitions.raft.progress import Progress
from tidemark.protocol.types import Epoch, Offset, Position


def at(offset: int) -> Position:
    return Position(Epoch(0), Offset(offset))


def test_what_is_sent_next_does_not_go_back_behind_what_is_known_to_be_there() -> None:
    """1. A run is sent. 2. The follower makes a part of it durable, and says so: to an earlier
    request, which comes first, of more; to this one, of less."""
    progress = Progress(at(5))
    progress.sent(at(10), 100)
    assert progress.succeeded(at(5), at(10))
    progress.sent(at(30), 100)
    assert progress.succeeded(at(5), at(23)), "a late one"
    assert not progress.succeeded(at(10), at(21)), "a short one"
    assert (progress.match, progress.next) == (at(23), at(23))
