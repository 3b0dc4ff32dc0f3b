"""A peer that lies is refused, whole, whatever it lies about."""

from collections.abc import Callable

import pytest

from tests.partitions.replication.cluster import KEY, Cluster
from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Ballot,
    PullResponse,
    ResetRequest,
    VoteRequest,
)
from tidemark.partitions.replication.checking import RefusedMessage, checked
from tidemark.partitions.replication.peer_messages import GroupBeat, GroupMessage, Heartbeat
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset, Position

CONFIG = Configuration((NodeId(1), NodeId(2), NodeId(3)))
EPOCH = Epoch(5)
LAST_EPOCH = Epoch(2**31 - 1)
"""After it there is no other."""


def start(epoch: int, offset: int) -> EpochStart:
    return EpochStart(Epoch(epoch), Offset(offset), NodeId(1), CONFIG)


def run(epoch: int, base: int, end: int, data: bytes) -> Run:
    return Run(Epoch(epoch), Offset(base), Offset(end), data)


def request(*entries: Entry, prev: Position = ORIGIN, epoch: int = 5) -> AppendRequest:
    return AppendRequest(Epoch(epoch), prev, entries, ORIGIN)


GOOD = batch(0, 2, epoch=1) + batch(2, 1, epoch=1)


def test_entries_that_hold_together_are_taken() -> None:
    message = request(start(1, 0), run(1, 0, 3, GOOD), start(4, 3))
    assert checked(message, EPOCH) is message


def flipped(at: int) -> bytes:
    data = bytearray(GOOD)
    data[at] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("what", "entries"),
    [
        ("an offset gap", (start(1, 0), run(1, 1, 4, GOOD))),
        ("another end", (start(1, 0), run(1, 0, 4, GOOD))),
        ("a batch elsewhere", (start(1, 0), run(1, 0, 1, batch(1, epoch=1)))),
        ("another epoch's batch", (start(1, 0), run(1, 0, 1, batch(0, epoch=2)))),
        ("a run of another epoch", (start(1, 0), run(2, 0, 1, batch(0, epoch=2)))),
        ("half a batch", (start(1, 0), run(1, 0, 3, GOOD[:-1]))),
        ("bytes behind the last", (start(1, 0), run(1, 0, 3, GOOD + b"x"))),
        ("nothing at all", (start(1, 0), run(1, 0, 0, b""))),
        ("an epoch that goes back", (start(3, 0), start(2, 0))),
        ("an epoch that starts elsewhere", (start(1, 1),)),
        ("an epoch beyond the leader's", (start(6, 0),)),
        ("something else than bytes", (start(1, 0), Run(Epoch(1), Offset(0), Offset(1), [1]))),
    ],
)
def test_a_lie_in_an_append_is_refused(what: str, entries: tuple[Entry, ...]) -> None:
    with pytest.raises(RefusedMessage):
        checked(request(*entries), EPOCH)


def test_every_flipped_bit_of_a_batch_is_noticed() -> None:
    for at in range(len(GOOD)):
        with pytest.raises(RefusedMessage):
            checked(request(start(1, 0), run(1, 0, 3, flipped(at))), EPOCH)


def reset(start_at: Position, *table: EpochStart, epoch: int = 5) -> ResetRequest:
    return ResetRequest(Epoch(epoch), start_at, table, b"", start_at)


@pytest.mark.parametrize(
    "wrap", [lambda r: r, lambda r: PullResponse(r.epoch, ORIGIN, (), r.start, r)]
)
@pytest.mark.parametrize(
    "lie",
    [
        reset(Position(Epoch(2), Offset(9)), start(2, 0), start(1, 5)),
        reset(Position(Epoch(2), Offset(9)), start(1, 5), start(2, 0)),
        reset(Position(Epoch(2), Offset(9)), start(1, 0)),
        reset(Position(Epoch(2), Offset(9)), start(1, 0), start(2, 10)),
        reset(Position(Epoch(6), Offset(9)), start(6, 0)),
    ],
)
def test_a_lie_in_a_reset_is_refused(
    lie: ResetRequest, wrap: Callable[[ResetRequest], ResetRequest | PullResponse]
) -> None:
    with pytest.raises(RefusedMessage):
        checked(wrap(lie), EPOCH)


def test_a_pull_is_checked_like_an_append() -> None:
    entries = (start(1, 0), run(1, 0, 4, GOOD))
    with pytest.raises(RefusedMessage):
        checked(PullResponse(Epoch(1), ORIGIN, entries, Position(Epoch(1), Offset(3))), EPOCH)


def test_an_epoch_after_which_there_is_no_other_is_followed_by_nobody() -> None:
    cluster = Cluster(3)
    cluster.open(preference=(1, 2, 3))
    cluster.run(2)
    beat = GroupBeat(KEY, LAST_EPOCH, True, ORIGIN, Offset(0))
    sender = cluster[1].node
    heartbeat = Heartbeat(
        incarnation=sender.incarnation, sequence=1 << 60, acknowledges=0, groups=(beat,)
    )
    cluster[2].node.receive(NodeId(1), heartbeat, cluster.now)
    for ballot in Ballot:
        lie = VoteRequest(LAST_EPOCH, ballot, Position(LAST_EPOCH, Offset(0)))
        cluster[2].node.receive(NodeId(1), GroupMessage(KEY, lie), cluster.now)
    cluster.turn(cluster[2])
    assert cluster[2].node.leader_of(KEY) == (1, 0)
    cluster.kill(1)
    cluster.run(5)
    assert cluster.leader().replica().epoch < 10
