"""What is a matter of brokers: who leads what, who hears of it, who campaigns when."""

from uuid import UUID

import pytest

from tests.partitions.replication.cluster import KEY, Cluster, heartbeats, three
from tidemark.partitions.raft.messages import AppendRequest, Ballot, Opened, VoteRequest
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.replication.peer_messages import (
    GroupBeat,
    GroupMessage,
    Heartbeat,
    PeerMessage,
)
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset, TopicPartition

OTHER, OTHER_TOPIC = PartitionKey(UUID(int=8), 0), TopicPartition("other", 0)


def idle_heartbeats(cluster: Cluster) -> list[int]:
    """How many groups each heartbeat of the next interval carries."""
    cluster.pool.clear()
    for broker in cluster.brokers.values():
        broker.node.tick(cluster.now + 0.1)
        cluster.turn(broker)
    return [len(heartbeat.groups) for heartbeat in heartbeats(cluster.pool)]


def test_an_idle_group_is_in_no_heartbeat() -> None:
    cluster = three()
    assert idle_heartbeats(cluster) == [0] * 6


def test_heartbeats_say_what_is_committed_to_the_groups_members_only() -> None:
    cluster = Cluster(4)
    for number in (1, 2, 3):
        cluster[number].open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(1)
    cluster[2].append("a")
    cluster.settle()
    cluster[2].node.tick(cluster.now + 0.1)
    cluster.turn(cluster[2])
    carried = {to: len(each.groups) for _, to, each in cluster.pool if isinstance(each, Heartbeat)}
    assert carried == {1: 1, 3: 1, 4: 0}


def test_a_leader_that_speaks_of_a_group_after_its_end_is_not_remembered() -> None:
    """It had yet to hear of that when it said so, and will not say anything else."""
    cluster = Cluster(4)
    for number in (1, 2, 3):
        cluster[number].open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(1)
    node = cluster[4].node
    node.remove(KEY, is_deleted=True)
    assert node.leader_of(KEY) == (None, -1)
    cluster[2].node.peers.metadata_version = 6
    cluster[2].node._news.add(KEY, [NodeId(4)])
    cluster.run(1)
    for exists, version in ((True, 7), (False, 5), (False, 5), (False, 7)):
        node.forget_gone([KEY], lambda _: exists, version)  # noqa: B023 # called at once
        assert node.leader_of(KEY) == (2, 0)
    node.forget_gone([KEY], lambda _: False, 7)
    assert node.leader_of(KEY) == (None, -1)


def test_brokers_without_a_replica_know_who_leads() -> None:
    cluster = Cluster(4)
    for number in (1, 2, 3):
        cluster[number].open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(1)
    assert cluster[4].node.leader_of(KEY) == (2, 0)
    assert GroupChange(KEY, leadership=True) in cluster[4].changes
    cluster.kill(2)
    assert cluster[4].node.leader_of(KEY) == (None, 0)
    cluster.run(1)
    assert cluster[4].node.leader_of(KEY)[0] in (1, 3)


def test_a_broker_that_comes_late_learns_who_leads() -> None:
    cluster = three()
    left = cluster.kill(3)
    cluster.run(1)
    back = cluster.start(3, *left)
    cluster.run(0.3)
    assert back.node.leader_of(KEY) == (2, 0)
    back.open([1, 2, 3])
    back.take()
    assert back.replica().leader == 2


def test_a_leader_that_was_taken_for_dead_is_heard_again() -> None:
    cluster = three()
    cluster.cut = {(2, 3)}
    cluster.run(2)
    assert cluster[3].node.leader_of(KEY)[0] is None
    cluster.cut = set()
    cluster.run(2)
    assert cluster[3].node.leader_of(KEY)[0] == cluster.leader().node_id


def test_a_leader_that_resigns_is_replaced_without_a_time_out() -> None:
    cluster = three()
    cluster[2].replica().tell(lambda group: group.step_down())
    cluster.run(0.2)
    assert cluster.leader().node_id in (1, 2, 3)
    assert cluster.leader().replica().epoch == 1


def test_who_has_led_a_later_epoch_and_resigned_is_not_followed_in_an_earlier_one() -> None:
    cluster = three()
    follower = cluster[3].node
    assert cluster[3].replica().leader == 2
    # It was cut off while its leader went on to epoch 1, and lost that, too.
    resigned = GroupBeat(KEY, Epoch(1), False, ORIGIN, Offset(0))
    news = Heartbeat(
        incarnation=cluster[2].node.incarnation, sequence=2**62, acknowledges=0, groups=(resigned,)
    )
    follower.receive(NodeId(2), news, cluster.now)
    cluster[3].take()
    assert cluster[3].replica().leader is None


def test_a_group_that_a_broker_gives_up_gets_another_leader() -> None:
    cluster = three()
    cluster[2].node.remove(KEY, is_deleted=False)
    del cluster[2].changes[:]
    cluster.run(1)
    assert cluster[1].node.leader_of(KEY)[0] in (1, 3)
    assert cluster[2].node.leader_of(KEY) == cluster[1].node.leader_of(KEY)


def test_no_group_campaigns_without_a_majority_and_all_do_with_one() -> None:
    cluster = Cluster(3)
    cluster.cut = {(a, b) for a in (1, 2, 3) for b in (1, 2, 3)}
    cluster.open([1, 2, 3])
    cluster.run(5)
    assert [b.replica().epoch for b in cluster.brokers.values()] == [-1] * 3
    cluster.cut = set()
    cluster.run(2)
    assert cluster.leader().replica().epoch == 0


def test_a_hundred_groups_have_leaders_again_soon_after_one_died() -> None:
    cluster = Cluster(3, timing=Timing(campaigns_at_once=8))
    keys = [PartitionKey(UUID(int=100 + number), 0) for number in range(100)]
    for number, key in enumerate(keys):
        cluster.open(
            [1, 2, 3], key=key, partition=TopicPartition("t", number), preference=[1, 2, 3]
        )
    cluster.run(3)
    assert all(cluster[1].replica(key).is_serving for key in keys)
    cluster.kill(1)
    before = cluster.now
    while not all(any(b.replica(k).is_serving for b in cluster.brokers.values()) for k in keys):
        cluster.run(0.02)
    assert cluster.now - before < 0.5


def test_a_removed_group_is_touched_no_more() -> None:
    cluster = three()
    replica = cluster[1].replica()
    cluster[1].node.remove(KEY, is_deleted=True)
    assert [record.key for record in cluster[1].take().records] == [KEY]
    cluster[2].append("a")
    cluster.run(1)
    assert replica.log_end == 0
    assert cluster[2].replica().high_watermark == 1


def test_a_lone_idle_broker_has_nothing_to_wake_up_for() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    cluster.run(1)
    assert cluster[1].node.next_deadline() == float("inf")


def test_a_lone_group_opens_one_epoch_however_slow_the_disk_is() -> None:
    cluster = Cluster(1)
    cluster[1].is_disk_slow = True
    cluster.open([1])
    for _ in range(10):
        cluster[1].node.tick(cluster.now)
        cluster[1].take()
    cluster[1].is_disk_slow = False
    cluster[1].sync()
    cluster.run(1)
    assert cluster[1].replica().is_serving
    assert cluster[1].replica().epoch == 0


def test_a_deleted_log_start_reaches_a_follower_that_lags() -> None:
    cluster = three()
    cluster.cut = {(2, 3)}
    for value in "ab":
        cluster[2].append(value)
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(1))
    cluster.cut = set()
    cluster.run(3)
    assert cluster[3].replica().log_start == 1
    assert cluster[3].committed_values() == ["b"]


def test_who_comes_under_the_number_of_one_that_has_left_leads_nothing() -> None:
    cluster = three()
    node = cluster[1].node
    assert node.leader_of(KEY)[0] == 2
    node.set_peers([NodeId(1), NodeId(3)])
    node.set_peers([NodeId(1), NodeId(2), NodeId(3)])
    node.peer_up(NodeId(2), 1, cluster.now)
    assert node.peers.is_alive(NodeId(2))
    assert node.leader_of(KEY)[0] is None


def test_a_dead_peer_is_not_told_everything_again_and_again() -> None:
    cluster = three()
    cluster.kill(3)
    cluster.brokers[NodeId(1)].node.set_peers([NodeId(1), NodeId(2), NodeId(3)])
    node = cluster[1].node
    sent = 0
    for _ in range(20):
        cluster.now += 0.1
        node.receive(NodeId(2), heartbeat_of(cluster, 2), cluster.now)
        node.tick(cluster.now)
        sent += len(cluster[1].take().sends.get(NodeId(3), []))
    assert 1 <= sent <= 4


def heartbeat_of(cluster: Cluster, number: int) -> Heartbeat:
    return cluster[number].node._news._heartbeats.make(NodeId(1), cluster.now)


LINKS = [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)]


@pytest.mark.parametrize("number", range(64))
def test_whatever_links_are_cut_two_that_hear_each_other_go_on(number: int) -> None:
    """Each of the 64 ways to cut three brokers from each other."""
    cut = {link for bit, link in enumerate(LINKS) if number >> bit & 1}
    cluster = three()
    cluster.cut = set(cut)
    cluster.run(6)
    pairs = [(a, b) for a, b in LINKS if a < b and not {(a, b), (b, a)} & cut]
    serving = [b for b in cluster.brokers.values() if b.replica().is_accepting]
    assert bool(serving) == bool(pairs)
    if serving:
        newest = max(serving, key=lambda broker: broker.replica().epoch)
        newest.append("a")
        cluster.run(2)
        assert newest.committed_values() == ["a"]
    cluster.cut = set()
    cluster.run(3)
    cluster.leader().append("b")
    cluster.run(1)
    assert len({tuple(b.committed_values()) for b in cluster.brokers.values()}) == 1


def test_a_hand_over_that_does_not_end_is_given_up() -> None:
    cluster = three()
    cluster[3].replica().fail("cannot be read")
    cluster[2].replica().tell(lambda group: group.hand_over(NodeId(3)))
    assert not cluster[2].replica().is_accepting
    cluster.run(5)
    assert cluster[2].replica().is_accepting


def test_the_preferred_one_leads_though_the_others_open_the_group_later() -> None:
    cluster = Cluster(3)
    cluster.run(1)
    cluster[2].open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(0.1)
    for number in (1, 3):
        cluster[number].open([1, 2, 3], preference=[2, 1, 3])
    cluster.settle()
    assert cluster.leader() is cluster[2]


def test_a_new_group_is_led_at_once() -> None:
    cluster = Cluster(3)
    cluster.run(1)
    cluster.open([1, 2, 3], preference=[2, 1, 3])
    for broker in cluster.brokers.values():
        broker.node.tick(cluster.now)
    cluster.settle()
    assert cluster.leader() is cluster[2]


@pytest.mark.parametrize("first", ["connection", "heartbeat"])
def test_who_comes_back_is_sent_what_it_lacks_when_it_opens_its_groups(first: str) -> None:
    """Its connections are there before its groups are, and what is said to those is lost."""
    cluster = three()
    left = cluster.kill(3)
    cluster[2].append("a")
    cluster.settle()
    back = cluster.start(3, *left)
    for other in (1, 2):
        back.node.peer_up(NodeId(other), cluster[other].node.incarnation, cluster.now)
        cluster[other].node.peer_up(NodeId(3), back.node.incarnation, cluster.now)
    if first == "heartbeat":
        cluster.run(0.3)
    else:
        cluster.turn(cluster[2])
        cluster.pool.clear()
    back.open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(0.11)  # a heartbeat, at most
    assert back.committed_values() == ["a"]


def test_who_has_heard_its_leader_does_not_say_that_it_is_there() -> None:
    cluster = Cluster(3)
    cluster.run(1)
    cluster.open([1, 2, 3], preference=[2, 1, 3])
    said = []
    for _ in range(20):
        cluster.now += 0.05
        for broker in cluster.brokers.values():
            broker.node.tick(cluster.now)
        while True:
            for broker in cluster.brokers.values():
                cluster.turn(broker)
            said += [each for each in cluster.pool if is_opened(each[2])]
            if not cluster.step():
                break
    assert [(source, to) for source, to, _ in said] == [(1, 2), (3, 2)]


def is_opened(message: PeerMessage) -> bool:
    return isinstance(message, GroupMessage) and isinstance(message.message, Opened)


def test_a_connection_that_is_replaced_costs_messages_and_no_leader() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.turn(cluster[2])
    cluster.pool.clear()
    for broker in cluster.brokers.values():
        broker.changes.clear()
    for one, other in LINKS:
        cluster[one].node.peer_up(NodeId(other), cluster[other].node.incarnation, cluster.now)
    cluster.settle()
    assert cluster[2].committed_values() == ["a"]
    assert cluster.leader() is cluster[2]
    assert not [each for b in cluster.brokers.values() for each in b.changes if each.leadership]


def test_a_follower_that_has_everything_is_not_asked_again_because_another_is_silent() -> None:
    cluster = three()
    cluster[3].replica().fail("cannot be read")
    cluster[2].append("a")
    cluster.settle()
    said = []
    for _ in range(60):
        cluster.now += 0.1
        for broker in cluster.brokers.values():
            broker.node.tick(cluster.now)
            cluster.turn(broker)
        said += [to for source, to, each in cluster.pool if source == 2 and is_append(each)]
        cluster.settle()
    assert set(said) == {3}


def test_a_follower_that_reads_late_is_not_sent_the_same_again() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.turn(cluster[2])
    unread = [each for each in cluster.pool if each[1] == 3]
    cluster.pool = [each for each in cluster.pool if each[1] != 3]
    said = 0
    for _ in range(40):  # less than the patience with who confirms so late
        cluster.now += 0.05
        for broker in (cluster[1], cluster[2]):
            broker.node.tick(cluster.now)
            broker.node.peers.heard(NodeId(3), cluster.now)
            broker.node.peers.excuse(cluster.now, 0.3)
            cluster.turn(broker)
        said += sum(is_append(each) for source, to, each in cluster.pool if (source, to) == (2, 3))
        unread += [each for each in cluster.pool if each[1] == 3]
        cluster.pool = [each for each in cluster.pool if each[1] != 3]
        cluster.settle()
    assert said == 0
    cluster.pool += unread
    cluster.settle()
    assert cluster[3].values() == ["a"]


def test_a_voter_that_is_asked_waits_for_what_becomes_of_the_one_before_it() -> None:
    cluster = three()  # after the second the first had better lead, then the third
    began = cluster.now
    for broker in (cluster[1], cluster[3]):
        broker.node.peer_down(NodeId(2), cluster.now)
        cluster.turn(broker)
    stood: dict[int, float] = {}
    asked = set[PartitionKey]()
    while cluster.now < began + 1:
        cluster.now += 0.01
        for broker in (cluster[1], cluster[3]):
            broker.node.tick(cluster.now)
            cluster.turn(broker)
        for source, _, message in cluster.pool:
            if isinstance(message, GroupMessage) and isinstance(message.message, VoteRequest):
                stood.setdefault(int(source), cluster.now)
        if KEY not in asked and 1 in stood:
            ask = VoteRequest(Epoch(2), Ballot.PRE, cluster[3].replica().group.shape.last)
            cluster[3].node.receive(NodeId(1), GroupMessage(KEY, ask), cluster.now)
            asked.add(KEY)
        # All answers are lost.
        cluster.pool = [
            each for each in cluster.pool if each[1] != 2 and not isinstance(each[2], GroupMessage)
        ]
        cluster.settle()
    assert stood[1] - began < 0.1
    assert 3 not in stood or stood[3] - began > 0.5


def test_a_voter_that_is_about_to_stand_leaves_it_to_who_is_handed_the_lead() -> None:
    cluster = three()
    first = cluster[1]  # which had better lead than the third
    first.node.peer_down(NodeId(2), cluster.now)
    cluster.turn(first)
    last = first.replica().group.shape.last
    ask = VoteRequest(Epoch(2), Ballot.MIGRATION, last)
    first.node.receive(NodeId(3), GroupMessage(KEY, ask), cluster.now)
    began = cluster.now
    while first.replica().epoch == Epoch(2) and cluster.now < began + 0.2:
        cluster.now += 0.01
        first.node.tick(cluster.now)
        cluster.turn(first)
        assert not any(
            isinstance(message, GroupMessage) and isinstance(message.message, VoteRequest)
            for _, _, message in cluster.pool
        )
    assert first.replica().hard_state.voted_for == 3


def is_append(message: PeerMessage) -> bool:
    return isinstance(message, GroupMessage) and isinstance(message.message, AppendRequest)
