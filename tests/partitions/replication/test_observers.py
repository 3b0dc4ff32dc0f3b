"""Observers: what they pull, from whom, how stale they are, and what the leader knows of it."""

from __future__ import annotations

from tests.partitions.replication.cluster import KEY, Broker, Cluster
from tidemark.partitions.replication.observers import Freshness
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.storage.room import Room
from tidemark.protocol.types import NodeId, Offset

VOTERS = (1, 2, 3)


def observed(*chain: int, count: int = 5) -> Cluster:
    """Brokers 1 to 3 vote, 1 leads; each of the chain observes, and had better pull from the one
    before it."""
    cluster = Cluster(count)
    for number in range(1, count + 1):
        if number in (*VOTERS, *chain):
            cluster[number].open(VOTERS, preference=VOTERS)
            cluster[number].node.set_observers(KEY, tuple(map(NodeId, chain)))
    for before, number in zip((2, *chain), chain, strict=False):
        prefer(cluster, number, before)
    cluster.run(2.0)
    assert cluster.serving() is cluster[1]
    return cluster


def prefer(cluster: Cluster, observer: int, parent: int) -> None:
    cluster[observer].node.observe(
        KEY, tuple(map(NodeId, VOTERS)), preferred=(NodeId(parent),), is_told=True
    )


def freshness(broker: Broker) -> Freshness:
    return broker.node.freshness(broker.replica())


def named(cluster: Cluster, *, at: int) -> list[int]:
    """Whom the leader sends readers to."""
    node, replica = cluster[1].node, cluster[1].replica()
    return list(map(int, node.observers.readers(replica, Offset(at), cluster.now, 5_000)))


def staleness_ms(broker: Broker) -> int:
    found = freshness(broker).staleness_ms
    assert found is not None
    return found


def parent(broker: Broker) -> int | None:
    return freshness(broker).parent


def pulls_in(cluster: Cluster, seconds: float) -> int:
    """How often broker 4 asks for something meanwhile."""
    pulls = 0
    end = cluster.now + seconds
    while cluster.now < end:
        for broker in cluster.brokers.values():
            broker.node.tick(cluster.now)
            cluster.turn(broker)
        pulls += sum(source == 4 for source, _, m in cluster.pool if isinstance(m, GroupMessage))
        cluster.step()
        cluster.now += 0.05
    return pulls


def test_what_is_committed_comes_down_a_chain_within_some_heartbeats() -> None:
    cluster = observed(4, 5)
    cluster[1].append("a", "b")
    cluster.run(0.7)
    for number in (4, 5):
        assert cluster[number].committed_values() == ["a", "b"]
        assert staleness_ms(cluster[number]) <= 100
    assert (parent(cluster[4]), parent(cluster[5])) == (2, 4)
    assert parent(cluster[2]) is None
    told = cluster[1].node.observers.standings(KEY)
    assert {node: (each.committed.offset, each.parent) for node, each in told.items()} == {
        4: (2, 2),
        5: (2, 4),
    }


def test_when_its_parent_dies_an_observer_pulls_from_a_voter() -> None:
    cluster = observed(4, 5)
    cluster[1].append("a")
    cluster.run(0.4)
    cluster.kill(4)
    cluster[1].append("b")
    cluster.run(0.5)
    assert cluster[5].committed_values() == ["a", "b"]
    assert parent(cluster[5]) in VOTERS


def test_a_parent_that_gets_nothing_itself_is_left() -> None:
    cluster = observed(4, 5)
    for number in VOTERS:
        cluster.cut |= {(number, 4)}
    # It is heard, and answers its child; it only knows of nothing new.
    cluster[1].append("a")
    cluster.run(5.0)
    assert cluster[5].committed_values() == ["a"]
    assert parent(cluster[5]) in VOTERS


def test_an_observer_without_room_asks_seldom_and_at_once_when_there_is_some() -> None:
    cluster = observed(4)
    room = cluster[4].replica().log.room = Room(is_out=True, why="the disk is full")
    cluster[1].append("a")
    cluster.run(1)
    pulls = 0
    for number in range(20):  # it is told that more is committed, again and again
        cluster[1].append(str(number))
        pulls += pulls_in(cluster, 0.5)
    assert pulls <= 4
    assert cluster[4].committed_values() == []
    room.is_out = False
    cluster.run(0.3)
    assert len(cluster[4].committed_values()) == 21


def test_an_observer_that_is_cut_off_knows_how_stale_it_is() -> None:
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(0.4)
    for number in VOTERS:
        cluster.cut |= {(number, 4), (4, number)}
    cluster[1].append("b")
    cluster.run(3.0)
    assert cluster[4].committed_values() == ["a"]
    assert 2900 <= staleness_ms(cluster[4]) <= 3200
    readers = cluster[1].node.observers.readers(
        cluster[1].replica(), Offset(0), cluster.now, 60_000
    )
    assert 4 not in readers, "nobody is sent to who is not heard"
    cluster.cut.clear()
    cluster.run(2.0)
    assert cluster[4].committed_values() == ["a", "b"]
    assert staleness_ms(cluster[4]) <= 200


def test_who_hears_its_leader_again_is_as_stale_as_before_until_it_has_what_it_missed() -> None:
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(0.4)
    room = cluster[4].replica().log.room = Room(why="the disk is full")
    for number in VOTERS:
        cluster.cut |= {(number, 4), (4, number)}
    cluster[1].append("b")
    cluster.run(8.0)
    room.is_out = True  # it can hear, and has yet to get what it missed
    cluster.cut.clear()
    cluster.run(1.0)
    assert cluster[4].node.peers.is_alive(NodeId(1))
    assert cluster[4].committed_values() == ["a"]
    assert 8_500 <= staleness_ms(cluster[4]) <= 9_500
    assert 4 not in named(cluster, at=2), "readers would wait there for what is long committed"
    room.is_out = False
    cluster.run(2.0)
    assert cluster[4].committed_values() == ["a", "b"]
    assert staleness_ms(cluster[4]) <= 200
    assert 4 in named(cluster, at=2)


def test_of_an_observer_that_was_away_nobody_knows_how_stale_it_is_before_it_has_caught_up() -> (
    None
):
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(0.4)
    files, state = cluster.kill(4)
    cluster[1].append("b")
    cluster.run(8.0)
    cluster.start(4, files, state)
    cluster[4].open(VOTERS, preference=VOTERS)
    room = cluster[4].replica().log.room = Room(is_out=True, why="the disk is full")
    prefer(cluster, 4, 2)
    cluster.run(2.0)
    assert cluster[4].node.peers.is_alive(NodeId(1))
    assert freshness(cluster[4]).lag_records == 2
    assert freshness(cluster[4]).staleness_ms is None
    assert 4 not in named(cluster, at=2)
    room.is_out = False
    cluster.run(2.0)
    assert cluster[4].committed_values() == ["a", "b"]
    assert staleness_ms(cluster[4]) <= 200
    assert 4 in named(cluster, at=2)


def test_the_leader_names_replicas_that_hold_what_is_read_and_observers_that_are_fresh() -> None:
    cluster = observed(4)
    cluster[1].append("a", "b")
    cluster.run(0.6)
    node, replica = cluster[1].node, cluster[1].replica()

    def readers(at: int, lag_max_ms: int = 5_000) -> list[int]:
        found = node.observers.readers(replica, Offset(at), cluster.now, lag_max_ms)
        return list(map(int, found))

    assert readers(2) == [2, 3, 4]
    assert readers(2, lag_max_ms=-1) == [2, 3], "no observer is as fresh as that"
    assert readers(3) == [4], "an observer waits for it"


def test_who_observes_no_more_is_not_named_again_before_it_says_how_far_it_is() -> None:
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(0.6)
    node, replica = cluster[1].node, cluster[1].replica()

    def readers() -> list[int]:
        found = node.observers.readers(replica, Offset(1), cluster.now, 60_000)
        return list(map(int, found))

    assert readers() == [2, 3, 4]
    node.set_observers(KEY, ())
    assert readers() == [2, 3], "it may have given its replica up, and would send readers back"
    node.set_observers(KEY, (NodeId(4),))
    assert readers() == [2, 3], "what it had then may be gone"
    node.set_observers(KEY, ())
    cluster[1].append("b")
    cluster.run(2.0)  # nobody has told broker 4
    assert 4 in node.observers.standings(KEY)
    assert readers() == [2, 3]
    node.set_observers(KEY, (NodeId(4),))
    cluster[1].append("c")
    cluster.run(2.0)
    assert readers() == [2, 3, 4]


def test_an_idle_group_is_hardly_asked_about() -> None:
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(6.0)
    assert pulls_in(cluster, 10.0) <= 3


def test_observers_follow_the_logs_start_and_begin_there_if_they_come_late() -> None:
    cluster = observed(4)
    for value in "abcd":
        cluster[1].append(value)
    cluster.run(0.5)
    cluster[1].replica().move_log_start(Offset(2))
    cluster.run(1.0)
    assert cluster[4].replica().log_start == 2
    cluster[5].open(VOTERS)
    cluster[5].node.observe(KEY, tuple(map(NodeId, VOTERS)))
    cluster.run(2.0)
    assert cluster[5].replica().log_start == 2
    assert cluster[5].committed_values() == ["c", "d"]


def test_an_observer_follows_the_next_leader_and_never_votes() -> None:
    cluster = observed(4)
    cluster[1].append("a")
    cluster.run(0.5)
    cluster.kill(1)
    cluster.run(3.0)
    following = cluster.serving()
    assert following.node_id in (2, 3)
    following.append("b")
    cluster.run(1.0)
    assert cluster[4].committed_values() == ["a", "b"]
    assert following.node.observers.standings(KEY)[NodeId(4)].committed.offset == 2
    # With one voter of three left, nobody is elected, whoever observes.
    left = 5 - following.node_id
    cluster.kill(int(following.node_id))
    cluster.run(5.0)
    assert not any(cluster[number].replica().is_leader for number in (left, 4))
