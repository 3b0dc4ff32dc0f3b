"""Bugs of other brokers, played with whole replicas: journals, checkpoints, restarts and all."""

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.raft.messages import AppendRequest, VoteRequest
from tidemark.partitions.replication.peer_messages import GroupMessage, Heartbeat
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import NodeId

PAIRS = [(1, 2), (2, 1), (2, 3), (3, 2)]


def led_by_second() -> Cluster:
    cluster = Cluster(3)
    cluster.open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(1)
    assert cluster.leader() is cluster[2]
    return cluster


def with_a_tail_that_was_cut(*, checkpoints: bool) -> Cluster:
    """Broker 2 led, and had three records alone; what follows has replaced them by two."""
    cluster = led_by_second()
    cluster[2].append("kept")
    cluster.run(0.3)
    cluster.cut = set(PAIRS)
    for value in ("x", "y", "z"):
        cluster[2].append(value)
    cluster.settle()
    if checkpoints:
        cluster[2].checkpoint()
    cluster.run(3)
    leader = next(b for b in cluster.brokers.values() if b.replica().is_serving)
    for value in ("a", "b"):
        leader.append(value)
    cluster.settle()
    cluster.cut = set()
    cluster.run(3)
    assert cluster[2].values() == ["kept", "a", "b"]
    return cluster


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_was_overwritten_does_not_come_back_from_the_journal(
    seed: int, checkpoints: bool
) -> None:
    """etcd#22442: entries that were overwritten came back from the log, behind a snapshot."""
    cluster = with_a_tail_that_was_cut(checkpoints=checkpoints)
    before = cluster[2].replica().group.shape.last
    if checkpoints:
        cluster[2].checkpoint()
    back = cluster.start(2, *cluster.kill(2, Random(seed)))
    back.open([1, 2, 3], preference=[2, 1, 3])
    assert back.values() == ["kept", "a", "b"]
    assert back.replica().group.shape.last >= before


@pytest.mark.parametrize("seed", range(8))
def test_the_epochs_that_are_known_are_those_of_the_log_after_any_crash(seed: int) -> None:
    """KAFKA-10706, KAFKA-16541: a table of epochs that was not cut with its log."""
    cluster = with_a_tail_that_was_cut(checkpoints=bool(seed % 2))
    if seed % 3 == 0:
        cluster[2].checkpoint()
    back = cluster.start(2, *cluster.kill(2, Random(seed)))
    back.open([1, 2, 3])
    shape, log = back.replica().group.shape, back.replica().log
    data = log.read(log.start_offset, bytes_max=1 << 20, end_offset=log.end_offset).read()
    headers = [header for _, header in iter_headers(data)]
    assert len(headers) == 3
    for header in headers:
        row = [each for each in shape.rows if each.start_offset <= header.base_offset][-1]
        assert row.epoch == header.partition_leader_epoch


def paused_while_another_is_elected() -> tuple[Cluster, Broker]:
    """Broker 2 led, and stands still while the others go on; nothing has come to it yet."""
    cluster = led_by_second()
    still = cluster.brokers.pop(NodeId(2))
    cluster.run(3)
    cluster.brokers[NodeId(2)] = still
    others = [each for each in cluster.brokers.values() if each is not still]
    (leader,) = [each for each in others if each.replica().is_serving]
    leader.append("newer")
    cluster.settle()
    return cluster, still


def test_a_leader_that_stood_still_acknowledges_nothing() -> None:
    """etcd#20418: it goes on where it was, and does not know yet that another one leads."""
    cluster, still = paused_while_another_is_elected()
    assert still.replica().high_watermark == 0
    if still.replica().is_accepting:
        still.append("stale")
    cluster.run(3)
    assert still.committed_values() == ["newer"]
    assert still.replica().leader == cluster.leader().node_id != 2


def test_a_leader_that_stood_still_gives_way_to_the_first_word_of_the_new_one() -> None:
    cluster, still = paused_while_another_is_elected()
    still.node.tick(cluster.now)
    for broker in cluster.brokers.values():
        broker.node.tick(cluster.now + 1)  # to one that seems dead, not at every interval
        cluster.turn(broker)
    for source, to, message in cluster.pool:
        if to == 2 and isinstance(message, Heartbeat):
            still.node.receive(source, message, cluster.now)
    still.take()
    with pytest.raises(RequestError):
        still.append("stale")


def test_who_was_away_for_long_comes_back_without_an_election() -> None:
    cluster = led_by_second()
    epoch = cluster[2].replica().epoch
    cluster.cut = {(3, 1), (1, 3), (3, 2), (2, 3)}
    cluster.run(60)
    cluster.cut = set()
    cluster.run(3)
    assert cluster.leader() is cluster[2]
    assert cluster[3].replica().epoch == epoch


def test_doubled_and_delayed_messages_do_not_multiply() -> None:
    """The prototype drowned in its own requests: an answer made a request, news or not."""
    cluster = led_by_second()
    rng, late, most = Random(1), [], 0
    for number in range(60):
        cluster[2].append(str(number))
        for broker in cluster.brokers.values():
            cluster.turn(broker)
        cluster.pool += [each for each in cluster.pool if rng.random() < 0.3]
        late += [each for each in cluster.pool if rng.random() < 0.2]
        cluster.step()
        if number % 10 == 9:
            cluster.pool += late
            late = []
        most = max(most, sum(is_request(message) for _, _, message in cluster.pool))
    cluster.settle()
    cluster.run(0.3)
    assert most < 200
    assert cluster[1].committed_values() == [str(number) for number in range(60)]


def is_request(message: object) -> bool:
    return isinstance(message, GroupMessage) and isinstance(
        message.message, AppendRequest | VoteRequest
    )
