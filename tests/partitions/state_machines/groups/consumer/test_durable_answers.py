"""What the log has of a consumer group before its members hear of it, and after a restart."""

from tests.partitions.state_machines.groups.consumer.clients import (
    REBALANCE_MS,
    Member,
    group_of,
    parts,
    settle,
    topics,
)
from tests.partitions.state_machines.groups.driver import GROUP, Coordinator
from tidemark.protocol.errors import ErrorCode

NONE = ErrorCode.NONE


def test_an_answer_leaves_once_what_it_says_is_durable() -> None:
    groups = Coordinator(topics=topics(orders=4), holds_writes=True)
    first, second = Member(groups, "a"), Member(groups, "b")
    one, again, other = first.send(), first.send(), second.send()
    assert all(groups.waits(each) for each in (one, again, other))
    assert len(groups.held) == 1, "a group has one write on its way"
    groups.store_one()
    assert not groups.waits(one)
    assert groups.waits(other)
    groups.store_one()
    assert not groups.waits(other)


def test_an_answer_that_says_nothing_new_waits_for_what_was_said_before(
    groups: Coordinator,
) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    groups.holds_writes = True
    one = first.send(says_owned=False)
    again = first.send(says_owned=False)
    assert len(groups.held) == 1
    assert all(groups.waits(each) for each in (one, again))
    groups.store_one()
    assert not any(groups.waits(each) for each in (one, again))


def test_a_write_that_failed_is_made_good_by_the_next() -> None:
    groups = Coordinator(topics=topics(orders=4), holds_writes=True)
    first, second = Member(groups, "a"), Member(groups, "b")
    lost = first.send()
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert groups.answers[lost].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not groups.held, "nothing is written for nobody"
    groups.holds_writes = False
    second.beat()
    described = groups.shard.describe_consumer(GROUP)
    groups.restart()
    restored = groups.shard.describe_consumer(GROUP)
    assert restored is not None
    assert described is not None
    assert set(restored.members) == set(described.members)


def test_after_a_restart_members_go_on_where_they_were(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b", reads=("orders",))
    settle(first, second)
    epoch, written = group_of(groups).epoch, len(groups.log)
    groups.restart()
    settle(first, second)
    assert (first.error, second.error) == (NONE, NONE)
    assert (group_of(groups).epoch, len(groups.log)) == (epoch, written)


def test_a_restart_in_the_middle_keeps_a_partition_held(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    first.beat()
    groups.restart()
    second.beat()
    assert second.owned == frozenset()
    groups.advance(REBALANCE_MS // 2)
    first.beat(says_owned=False)
    second.beat()
    groups.advance(REBALANCE_MS // 2)
    second.beat()
    assert second.owned == parts("orders", 0, 1, 2, 3), "deadlines hold for the next coordinator"
