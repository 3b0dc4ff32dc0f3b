"""Scenarios of followers that need what the leader no longer has."""

import pytest

from tests.scenarios.cluster import Cluster, Envelope, at
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Message,
    PullResponse,
    ResetRequest,
)
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


def _trim(cluster: Cluster, node: int, start: int) -> None:
    cluster[node].disk.trim(Offset(start))
    cluster[node].do(lambda g: g.trim(Offset(start)))


def _without_third() -> Cluster:
    """A leader whose log begins at 4, and a follower that is down, with nothing."""
    cluster = Cluster(3)
    cluster.crash(3)
    cluster.elect(1)
    cluster.produce(1, b"abcdef")
    _trim(cluster, 1, 4)
    return cluster


def test_a_follower_below_the_log_start_begins_there() -> None:
    cluster = _without_third()
    cluster.restart(3)
    cluster.settle()
    cluster.beat()
    assert cluster[3].group.shape.start == at(0, 4)
    assert cluster[3].committed == b"ef"
    assert cluster[3].group.config == cluster[1].group.config


def test_a_late_reset_does_not_cut_what_came_after_it() -> None:
    """camunda#6092."""
    cluster = _without_third()
    cluster.restart(3)
    resets: list[Envelope] = []
    while not resets:
        cluster.deliver(*cluster.messages[:1])
        del cluster.messages[:1]
        for node in cluster.nodes.values():
            node.persist()
        resets = [e for e in cluster.messages if isinstance(e.message, ResetRequest)]
    cluster.settle()
    cluster.produce(1, b"ghi")
    cluster.deliver(*resets)
    cluster.settle()
    assert cluster[3].log == b"efghi"


def test_a_reset_that_comes_twice_is_one_reset() -> None:
    """etcd#18055."""
    cluster = _without_third()
    cluster.restart(3)
    for _ in range(10):
        for envelope in cluster.take():
            cluster.deliver(envelope, envelope)
        for node in cluster.nodes.values():
            node.persist()
    cluster.settle()
    cluster.beat()
    assert cluster[3].committed == b"ef"


def test_a_reset_is_answered_once_it_is_durable() -> None:
    cluster = _without_third()
    cluster.restart(3)
    while not cluster[3].disk.pending or cluster[3].group.shape.start_offset == 0:
        cluster.deliver(*cluster.messages[:1])
        del cluster.messages[:1]
        if cluster[3].group.shape.start_offset == 0:
            cluster[3].persist()
    answers = [e.message for e in cluster.take(AppendResponse, source=3)]
    assert not [a for a in answers if isinstance(a, AppendResponse) and a.prev == at(0, 4)]
    cluster.crash(3)
    assert cluster.restart(3).group.shape.start_offset == 0


def test_a_log_start_that_moves_while_a_reset_is_under_way() -> None:
    """camunda#4451: the follower gets it, and needs the next one at once. It converges."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=1))
    cluster.crash(3)
    cluster.elect(1)
    cluster.produce(1, b"abcdef")
    cluster.restart(3)
    for start in (1, 3, 5, 6):
        for _ in range(3):
            envelopes = cluster.take()
            cluster.deliver(*envelopes)
            for node in cluster.nodes.values():
                node.persist()
        _trim(cluster, 1, start)
    cluster.settle()
    cluster.produce(1, b"g")
    assert cluster[3].committed[-1:] == b"g"
    assert cluster[3].group.shape.last == cluster[1].group.shape.last


def test_an_append_below_the_followers_own_log_start_is_compared_there() -> None:
    """Its own retention went further than the leader's: what it gave up was committed."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.elect(2)
    cluster.produce(2, b"def")
    _trim(cluster, 3, 5)
    cluster[2].do(lambda g: g.peer_reset(NodeId(3)))
    sent = AppendRequest(Epoch(1), at(0, 1), (), at(1, 6))
    cluster.deliver(Envelope(2, 3, sent))
    (answer,) = cluster.take(AppendResponse, source=3)
    assert answer.message == AppendResponse(Epoch(1), at(0, 1), at(0, 1))


def test_a_reset_whose_epochs_make_no_log_is_not_believed() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    config = cluster[2].group.config
    rows = tuple(
        EpochStart(Epoch(epoch), Offset(start), NodeId(1), config)
        for epoch, start in [(0, 5), (0, 3)]
    )
    reset = ResetRequest(Epoch(0), at(0, 7), rows, b"", at(0, 7))
    of_an_epoch_to_come = ResetRequest(Epoch(0), at(9, 7), (), b"", at(9, 7))
    cluster.deliver(Envelope(1, 2, reset), Envelope(1, 2, of_an_epoch_to_come))
    assert cluster[2].group.shape.last == at(0, 0)


@pytest.mark.parametrize("start", [at(0, 999), at(-1, 700), at(1, 4)])
@pytest.mark.parametrize("is_observer", [False, True])
def test_a_reset_that_gives_up_what_is_committed_is_not_believed(
    start: Position, is_observer: bool
) -> None:
    """By its epoch or by its offset it begins before what is committed, and nobody has it."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.elect(2)
    cluster.produce(2, b"de")
    group = cluster[3].group
    assert (group.epoch, group.committed) == (1, at(1, 5))
    epoch = Epoch(max(0, start.epoch))
    table = (EpochStart(epoch, Offset(0), NodeId(2), group.config),) if start.epoch >= 0 else ()
    reset = ResetRequest(Epoch(1), start, table, b"", start)
    message: Message = reset
    if is_observer:
        cluster[3].do(lambda g: g.observe())
        message = PullResponse(Epoch(1), group.shape.last, (), at(1, 5), reset)
    cluster[3].do(lambda g: g.receive(NodeId(2), message))
    assert cluster[3].committed == b"abcde"
