"""A replica that is alone in its group and syncs: what is durable is committed, and its core need
not hear of that before something else happens."""

from __future__ import annotations

from collections.abc import Callable
from errno import EMFILE
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.partitions.replication.cluster import KEY, Broker, Cluster, batch_of
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.replication.group_log import GroupLog
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.header import read_fields
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

LARGE_BYTES = 500
"""Of a run that is not written to the journal."""
SIZES = [1, 700]


def opened(*, has_lane: bool = True, is_slow: bool = False, is_eager: bool = False) -> Cluster:
    """Broker 1 is alone in the group; broker 2 is there to join it."""
    cluster = Cluster(2, has_lane=has_lane)
    cluster.open([1], journaled_bytes_max=LARGE_BYTES, is_eager=is_eager)
    cluster.run(1)
    cluster[1].append("first")
    cluster.settle()
    assert cluster[1].replica().is_solo == (not is_eager)
    cluster[1].is_disk_slow = is_slow
    return cluster


def at(count: int) -> Position:
    """Behind so many batches, and the first."""
    return Position(Epoch(0), Offset(1 + count))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Offset]:
    """How far cores have heard of appends, each time that they have."""
    heard: list[Offset] = []
    appended = Leader.appended

    def hear(self: Leader, group: Group, end_offset: Offset, *, is_durable: bool) -> None:
        heard.append(end_offset)
        appended(self, group, end_offset, is_durable=is_durable)

    monkeypatch.setattr(Leader, "appended", hear)
    return heard


@pytest.mark.parametrize("size", SIZES)
def test_the_core_of_a_lone_replica_hears_of_no_append(told: list[Offset], size: int) -> None:
    cluster = opened()
    told.clear()
    for count in range(1, 4):
        cluster[1].append("x" * size)
        cluster.settle()
        assert cluster[1].replica().committed == at(count)
    assert cluster[1].replica().durable_end == 4
    assert not told
    assert cluster[1].replica().group.committed == at(3)
    assert told == [4]


@pytest.mark.parametrize("size", SIZES)
def test_what_is_not_durable_is_not_committed(size: int) -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("x" * size)
    cluster.settle()
    assert broker.replica().committed == at(0)
    broker.append("y" * size)
    broker.sync()
    assert broker.replica().committed == at(1), "the second came after what is durable now"
    assert broker.replica().durable_end == 2
    cluster.settle()
    broker.sync()
    assert broker.replica().committed == at(2)


def test_what_comes_next_is_not_committed_before_it_is_durable() -> None:
    broker = opened(is_slow=True)[1]
    batch = batch_of("a")
    assert broker.replica().append_next(read_fields(batch), batch, 1)
    broker.take()
    assert broker.replica().committed == at(0)
    broker.sync()
    assert broker.replica().committed == at(1)


def test_something_follows_from_a_batch_that_is_to_be_synced() -> None:
    replica = opened()[1].replica()
    assert replica.is_solo
    assert replica.commits_in is None


def test_what_has_become_durable_is_reported_to_the_broker() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.changes.clear()
    broker.sync()
    cluster.settle()
    assert [change.key for change in broker.changes if change.committed] == [KEY]


def test_an_observer_hears_of_what_is_committed_at_the_next_heartbeat() -> None:
    cluster = opened()
    cluster[1].node.observers.set_observers(KEY, [NodeId(2)])
    cluster[2].node.observe(KEY, [NodeId(1)], is_told=True)
    cluster.run(2)
    for value in ("a", "b"):  # with the first of these it is solo again
        cluster[1].append(value)
        cluster.settle()
        cluster.run(cluster.timing.calm_heartbeat_seconds)
        assert cluster[2].committed_values()[-1] == value, "and not at its own next look"
    assert cluster[1].replica().is_solo


def test_a_core_that_is_looked_at_knows_what_is_durable_and_what_is_not() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.sync()
    broker.append("b")
    cluster.settle()
    group = broker.replica().group
    assert (group.shape.last, group.committed, group.durable) == (at(2), at(1), at(1))
    assert not broker.replica().is_solo
    cluster.settle()
    broker.sync()
    cluster.settle()
    assert broker.replica().committed == group.committed == at(2)
    assert broker.replica().is_solo, "as before somebody has looked"


def test_what_was_solo_when_it_was_written_and_is_not_when_it_is_durable() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.replica().tell(partial(Group.add_learner, node=NodeId(2)))
    cluster.run(1)
    assert broker.replica().committed == at(0)
    broker.is_disk_slow = False
    cluster.run(1)
    assert broker.replica().committed == at(1)
    assert cluster[2].values() == ["first", "a"]


def test_writes_that_are_held_leave_nothing_uncommitted() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.replica().pause_writes()
    with pytest.raises(RequestError):
        broker.append("b")
    cluster.settle()
    broker.sync()
    cluster.settle()
    assert broker.replica().committed == at(1)
    assert broker.replica().group.committed == at(1)
    broker.replica().resume_writes()
    broker.append("b")
    cluster.settle()
    broker.sync()
    cluster.settle()
    assert broker.replica().committed == at(2)


def test_a_lone_leader_that_steps_down_before_it_is_durable() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.replica().tell(Group.step_down)
    with pytest.raises(RequestError):
        broker.append("b")
    broker.sync()
    assert broker.replica().committed == at(0), "who does not lead commits nothing"


def test_a_change_of_the_flush_mode_waits_for_nothing_of_before() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.replica().syncs_before_ack = False
    broker.append("b")
    assert broker.replica().committed == at(2)
    broker.sync()
    assert broker.replica().committed == at(2), "and nothing is taken back"
    cluster.settle()
    assert broker.replica().committed == at(2)


def test_a_sync_that_was_not_awaited_any_more_takes_nothing_back() -> None:
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.replica().move_log_start(Offset(1))  # which the journal is to say, in the same block
    cluster.settle()
    broker.replica().syncs_before_ack = False
    broker.append("a")
    cluster.settle()
    broker.sync()
    assert broker.replica().committed == at(1)


def test_a_start_that_moves_is_where_the_core_thinks() -> None:
    cluster = opened()
    broker = cluster[1]
    for value in ("a", "b", "c"):
        broker.append(value)
        cluster.settle()
    broker.replica().move_log_start(Offset(3))
    cluster.settle()
    assert broker.replica().group.shape.start_offset == 3
    broker.append("d")
    cluster.settle()
    assert broker.committed_values() == ["c", "d"]


def test_a_start_that_could_not_be_moved_is_moved_with_the_next_append(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: GroupLog, offset: Offset, snapshot: bytes) -> None:
        raise OSError(EMFILE, "no descriptor is left")

    cluster = opened()
    broker = cluster[1]
    with monkeypatch.context() as refusing:
        refusing.setattr(GroupLog, "move_start", refuse)
        broker.replica().move_log_start(Offset(1))
        cluster.settle()
    assert broker.replica().log_start == 0
    broker.append("a")
    cluster.settle()
    assert broker.replica().log_start == 1


def test_a_start_that_moves_waits_for_the_core() -> None:
    """It hears of what is appended without a sync when it has heard of the sync before."""
    cluster = opened(is_slow=True)
    broker = cluster[1]
    broker.append("a")
    cluster.settle()
    broker.replica().syncs_before_ack = False
    broker.append("b")
    broker.replica().move_log_start(Offset(3))
    cluster.settle()
    assert broker.replica().log_start == 0
    broker.sync()
    cluster.settle()
    assert broker.replica().log_start == broker.replica().group.shape.start_offset == 3


def test_a_group_that_all_brokers_want_to_hear_of_is_not_solo() -> None:
    cluster = opened(is_eager=True)
    cluster[1].append("a")
    cluster.settle()
    assert not cluster[1].replica().is_solo


def test_what_was_acknowledged_is_there_after_a_kill() -> None:
    cluster = opened()
    cluster[1].append("a")
    cluster[1].append("x" * 700)
    cluster.settle()
    cluster[1].is_disk_slow = True
    cluster[1].append("lost, perhaps")
    files, state = cluster.kill(1)
    broker = cluster.start(1, files, state)
    broker.open([1], journaled_bytes_max=LARGE_BYTES)
    cluster.run(1)
    assert broker.committed_values()[:3] == ["first", "a", "x" * 700]


# With the lane, and without

Action = Callable[[Cluster], object]


def appends(size: int) -> Action:
    def act(cluster: Cluster) -> None:
        if cluster[1].replica().is_accepting:
            cluster[1].append("x" * size)

    return act


def slows(cluster: Cluster) -> None:
    cluster[1].is_disk_slow = not cluster[1].is_disk_slow


def syncs(cluster: Cluster) -> None:
    cluster[1].sync()


def looks(cluster: Cluster) -> None:
    assert cluster[1].replica().group.shape.end_offset == cluster[1].replica().log_end


def pauses(cluster: Cluster) -> None:
    replica = cluster[1].replica()
    if replica.is_paused:
        replica.resume_writes()
    else:
        replica.pause_writes()


def flushes(cluster: Cluster) -> None:
    replica = cluster[1].replica()
    replica.syncs_before_ack = not replica.syncs_before_ack


def trims(cluster: Cluster) -> None:
    replica = cluster[1].replica()
    replica.move_log_start(replica.high_watermark)


def learns(cluster: Cluster) -> None:
    cluster[1].replica().tell(partial(Group.add_learner, node=NodeId(2)))


def unlearns(cluster: Cluster) -> None:
    cluster[1].replica().tell(partial(Group.remove_learner, node=NodeId(2)))


def waits(cluster: Cluster) -> None:
    cluster.run(0.2)


def restarts(cluster: Cluster) -> None:
    is_synced = cluster[1].replica().syncs_before_ack
    files, state = cluster.kill(1)
    broker = cluster.start(1, files, state)
    broker.open([1], flush_commit=is_synced, journaled_bytes_max=LARGE_BYTES)
    cluster.run(1)


actions = st.one_of(
    st.builds(appends, st.sampled_from(SIZES)),
    st.sampled_from([slows, syncs, looks, pauses, flushes, trims, learns, unlearns, waits]),
    st.just(restarts),
)


def seen(broker: Broker) -> list[object]:
    """What clients see; the core is not looked at, for it would hear of all that was appended."""
    replica = broker.replica()
    found: list[object] = [replica.epoch, replica.is_accepting, replica.committed]
    return [*found, replica.log_start, replica.durable_end, broker.values()]


def known(broker: Broker) -> list[object]:
    """What its core knows."""
    group = broker.replica().group
    return [group.shape.last, group.shape.start_offset, group.durable, group.committed]


@settings(max_examples=150, deadline=None)
@given(st.lists(actions, max_size=25))
def test_the_lane_changes_nothing(script: list[Action]) -> None:
    ways = [opened(has_lane=each) for each in (True, False)]
    for act in script:
        for cluster in ways:
            act(cluster)
            cluster.settle()
        short, long = ways
        assert seen(short[1]) == seen(long[1])
    for cluster in ways:
        cluster[1].is_disk_slow = False
        cluster.run(1)
    broker = ways[0][1]
    assert known(broker) == known(ways[1][1])
    assert broker.replica().high_watermark == broker.replica().log_end
    assert ways[0][2].values() == ways[1][2].values()
