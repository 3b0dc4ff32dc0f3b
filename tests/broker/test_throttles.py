"""What the throttles that are set come to for one broker that sends."""

from tests.partitions.state_machines.clusters import on
from tests.partitions.state_machines.wishes import ORDERS, cluster, reassign
from tidemark.broker.reassigning.throttles import throttles_of
from tidemark.partitions.replication.throttles import Throttle
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import SetBrokerConfigs, SetTopicConfigs
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"
FIRST, SECOND = PartitionKey(ORDERS, 0), PartitionKey(ORDERS, 1)
ME, OTHER, LEARNER = map(NodeId, (1, 2, 4))
LEADERS = {FIRST: ME, SECOND: OTHER}


def moving() -> ClusterState:
    """Of partitions on 1, 2, 3 and on 2, 3, 4, to 1, 2, 4 and to 1, 3, 4."""
    state = cluster()
    state.apply(reassign(state, 0, on(1, 2, 4)))
    state.apply(reassign(state, 1, on(1, 3, 4)))
    return state


def set_rate(state: ClusterState, node: NodeId | None, **rates: int) -> None:
    configs = {f"{side}.replication.throttled.rate": str(rate) for side, rate in rates.items()}
    state.apply(SetBrokerConfigs(at_version=state.version, node_id=node, configs=configs))


def throttle_topic(state: ClusterState, **lists: str) -> None:
    configs = {f"{side}.replication.throttled.replicas": text for side, text in lists.items()}
    state.apply(SetTopicConfigs(at_version=state.version, id=ORDERS, configs=configs))


def throttles(state: ClusterState) -> list[Throttle]:
    return throttles_of(state, ME, LEADERS.get)


def test_a_leaders_rate_is_about_the_partitions_that_name_it() -> None:
    state = moving()
    throttle_topic(state, leader="0:1,1:2")
    assert throttles(state) == []
    set_rate(state, ME, leader=1000)
    set_rate(state, OTHER, leader=1)
    assert throttles(state) == [Throttle(1000, {FIRST})]
    throttle_topic(state, leader="*")
    assert throttles(state) == [Throttle(1000, {FIRST, SECOND})]


def test_what_was_set_for_a_broker_comes_before_what_was_set_for_all() -> None:
    state = moving()
    throttle_topic(state, leader="*")
    set_rate(state, None, leader=7)
    assert [each.bytes_per_second for each in throttles(state)] == [7]
    set_rate(state, ME, leader=0)
    assert [each.bytes_per_second for each in throttles(state)] == [0]


def test_a_followers_rate_is_shared_by_those_who_lead_what_it_is_to_get() -> None:
    state = moving()
    set_rate(state, LEARNER, follower=1000)
    throttle_topic(state, follower="0:4")
    assert throttles(state) == [Throttle(1000, {FIRST}, LEARNER)]
    state.apply(reassign(state, 1, on(2, 3, 1)))
    state.apply(reassign(state, 0, on(1, 4, 3)))
    throttle_topic(state, follower="*")
    set_rate(state, ME, follower=600)
    # Broker 4 is to get the first one, and broker 1 the second: it holds the first.
    assert throttles(state) == [
        Throttle(300, {FIRST, SECOND}, ME),
        Throttle(1000, {FIRST}, LEARNER),
    ]


def test_a_leader_that_is_not_known_has_no_part() -> None:
    state = moving()
    set_rate(state, LEARNER, follower=1000)
    throttle_topic(state, follower="*")
    assert throttles_of(state, ME, lambda _: None)[0].bytes_per_second == 1000


def test_nothing_is_throttled_that_does_not_move() -> None:
    state = cluster()
    throttle_topic(state, leader="*", follower="*")
    set_rate(state, None, leader=1, follower=1)
    assert throttles(state) == [Throttle(1, set())]
