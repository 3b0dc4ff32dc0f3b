"""Brokers that stop in order record their logs as they are."""

from dataclasses import replace

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.protocol.types import Offset


def diverged() -> tuple[Cluster, Broker]:
    """A broker whose log ends with what nobody else has, and which is about to hear of it."""
    cluster = Cluster(3)
    cluster.open(preference=(1, 2, 3))
    cluster.run(2)
    cluster.cut |= {(1, 2), (1, 3), (2, 1), (3, 1)}
    cluster[1].append("lost 1", "lost 2")
    cluster.run(3)
    cluster[2].append("kept")
    cluster.run(1)
    cluster.cut.clear()
    return cluster, cluster[1]


def hear_until_the_core_has_cut(cluster: Cluster, broker: Broker) -> None:
    """Everybody goes on, until nothing but the taking of the output is left to be done here."""
    shape = broker.replica().group.shape
    rows = shape.rows
    while shape.rows == rows:
        assert cluster.now < 30
        cluster.now += 0.01
        for each in cluster.brokers.values():
            each.node.tick(cluster.now)
            cluster.turn(each)
        while cluster.pool and shape.rows == rows:
            source, to, message = cluster.pool.pop(0)
            cluster[to].node.receive(source, message, cluster.now)


def stop(broker: Broker) -> None:
    """As a broker does it that takes no more output."""
    mark, replica = broker.journal.begin_checkpoint(), broker.replica()
    row = replica.state_row(Offset(0))
    broker.state.save([replace(row, recovery_point=replica.log.close())], journal_start=mark)
    broker.state.end_run()


def start_again(cluster: Cluster, broker: Broker) -> None:
    files, state = cluster.kill(broker.node_id)
    cluster.start(broker.node_id, files, state).open((1, 2, 3))
    cluster.run(10)


def test_a_cut_that_is_not_done_any_more_does_not_make_one_log_pass_for_another() -> None:
    cluster, broker = diverged()
    hear_until_the_core_has_cut(cluster, broker)
    assert broker.replica().group.has_ready
    stop(broker)
    start_again(cluster, broker)
    assert cluster[1].committed_values() == ["kept"]


def test_a_replica_that_is_closed_while_its_cut_waits_for_the_journal_is_checked_again() -> None:
    cluster, broker = diverged()
    broker.is_disk_slow = True
    while not broker.replica().is_held:
        assert cluster.now < 30
        cluster.run(0.05)
    broker.replica().close()
    broker.sync()
    stop(broker)
    start_again(cluster, broker)
    assert cluster[1].committed_values() == ["kept"]


def test_a_log_with_nothing_left_to_be_done_is_not_checked_again() -> None:
    cluster, broker = diverged()
    cluster.run(5)
    stop(broker)
    start_again(cluster, broker)
    assert cluster[1].replica().log.recovery.clean
