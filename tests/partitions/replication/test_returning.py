"""What is left of a group that a broker was in before: its epoch, until the group has gone on."""

from tests.partitions.replication.cluster import KEY, Broker, Cluster
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.left_groups import leave, left_epochs
from tidemark.partitions.storage.state_db import Condition, PartitionState
from tidemark.protocol.types import Epoch, NodeId, Offset

ONE, TWO = Configuration((NodeId(1),)), Configuration((NodeId(2),))


def having_left(epoch: int) -> Broker:
    (broker,) = Cluster(1).brokers.values()
    leave(broker.state, {KEY: Epoch(epoch)})
    return broker


def test_who_comes_back_refuses_the_leaders_that_it_had_deposed() -> None:
    replica = having_left(7).open([2, 3])
    assert (replica.epoch, replica.group.left_in) == (7, 7)
    assert replica.hard_state == HardState(Epoch(7), None)


def test_who_comes_back_has_its_leader_begin_anew() -> None:
    """The leader has not heard that it had left: it knows what it held before."""
    cluster = Cluster(2)
    cluster.open([1], preference=[1])
    cluster.run(1)
    cluster[1].replica().tell(lambda group: group.add_learner(NodeId(2)))
    cluster[1].append("a")
    cluster.run(1)
    assert cluster[2].values() == ["a"]
    two = cluster[2]
    epoch = two.replica().epoch
    two.replica().log.abandon()
    two.node.remove(KEY, is_deleted=True, lives_on=True)
    two.sync()
    leave(two.state, {KEY: epoch})
    for name in list(two.files.sizes("/data/orders-0")):
        two.files.remove(f"/data/orders-0/{name}")
    two.open([1])
    cluster[1].append("b")
    cluster.run(1)
    assert two.values() == ["a", "b"]
    assert two.replica().group.is_clean


def test_what_was_remembered_before_is_not_forgotten_by_leaving_again() -> None:
    broker = having_left(7)
    leave(broker.state, {KEY: Epoch(3)})
    assert left_epochs(broker.state) == {KEY: 7}
    vote = HardState(Epoch(9), NodeId(2))
    broker.state.save([PartitionState(key=KEY, name="orders-0", hard_state=vote)])
    leave(broker.state, {KEY: Epoch(3)})
    assert left_epochs(broker.state) == {KEY: 9}
    assert not broker.state.partition_states()


def test_once_it_has_gone_beyond_it_is_like_any_other_though_its_log_is_lost() -> None:
    """It alone votes, and its page cache is gone: nobody else can lead."""
    broker = having_left(7)
    rows = (
        EpochStart(Epoch(3), Offset(0), NodeId(1), TWO),
        EpochStart(Epoch(9), Offset(5), NodeId(2), ONE),
    )
    broker.state.save(
        [
            PartitionState(
                key=KEY, name="orders-0", epochs=rows, hard_state=HardState(Epoch(9), None)
            )
        ]
    )
    for _ in range(2):
        replica = broker.open([1])
        assert replica.group.left_in is None
        assert replica.group.shape.last.epoch == 3
        assert broker.state.partition_states()[KEY].condition is Condition.UNCLEAN
        assert left_epochs(broker.state) == {}
        broker.node.remove(KEY, is_deleted=False)


def test_a_topic_that_is_deleted_leaves_nothing() -> None:
    broker = having_left(7)
    broker.state.forget_partitions([KEY])
    assert left_epochs(broker.state) == {}
