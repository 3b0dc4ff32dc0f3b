"""What is answered when: nothing that promises durability before it is durable, and every waiter
is answered when the coordinator is not the coordinator any more."""

import pytest

from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.records import decode_record, encode_record
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition


def test_a_commit_is_answered_and_seen_only_once_it_is_durable() -> None:
    groups = Coordinator(holds_writes=True)
    waiter = groups.commit(5)
    assert groups.waits(waiter)
    assert groups.committed_offset() is None
    groups.store_one()
    assert groups.committed(waiter).error is ErrorCode.NONE
    assert groups.committed_offset() == 5


def test_commits_take_effect_in_the_order_of_the_log() -> None:
    groups = Coordinator(holds_writes=True)
    for offset in (5, 6, 4):
        groups.commit(offset)
    seen = []
    while groups.held:
        groups.store_one()
        seen.append(groups.committed_offset())
    assert seen == [5, 6, 4], "a lower commit is what its client asked for"


def test_a_commit_that_could_not_be_written_changes_nothing() -> None:
    groups = Coordinator(holds_writes=True)
    waiter = groups.commit(5)
    groups.fail_one(ErrorCode.NOT_COORDINATOR)
    assert groups.committed(waiter).error is ErrorCode.NOT_COORDINATOR
    assert groups.committed_offset() is None
    assert groups.shard.list_groups() == [], "nothing is left of a group that never was"


def test_an_assignment_is_handed_out_only_once_it_is_durable() -> None:
    groups = Coordinator(holds_writes=True)
    groups.join(name="m")
    waiter = groups.sync("m", 1, {"m": b"all"})
    assert groups.waits(waiter)
    assert groups.state() is GroupState.COMPLETING_REBALANCE
    groups.store_all()
    assert groups.synced(waiter).assignment == b"all"
    assert groups.state() is GroupState.STABLE


def test_an_assignment_that_could_not_be_written_starts_another_rebalance() -> None:
    groups = Coordinator(holds_writes=True)
    groups.join(name="m")
    waiter = groups.sync("m", 1, {"m": b"all"})
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert groups.synced(waiter).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.state() is GroupState.PREPARING_REBALANCE
    assert groups.joined(groups.join("m")).generation == 2


def test_a_leader_that_syncs_twice_is_answered_with_its_first_assignment() -> None:
    groups = Coordinator(holds_writes=True)
    groups.join(name="m")
    first = groups.sync("m", 1, {"m": b"first"})
    second = groups.sync("m", 1, {"m": b"second"})
    assert groups.synced(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.store_all()
    assert groups.synced(second).assignment == b"first"
    groups.restart()
    assert groups.synced(groups.sync("m", 1)).assignment == b"first", "nor does the log say else"


def test_a_restarted_static_member_learns_its_id_only_once_it_is_durable() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.holds_writes = True
    waiter = groups.join(name="b2", instance_id="b")
    assert groups.waits(waiter)
    groups.store_all()
    assert groups.joined(waiter).member_id == "b2"


def test_a_restarted_static_member_that_a_rebalance_overtakes_is_answered_by_it() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.holds_writes = True
    waiter = groups.join(name="b2", instance_id="b")
    groups.join("a", instance_id="a", protocols=(("range", b"changed"),))
    assert groups.joined(waiter).error is ErrorCode.NONE
    groups.store_all()
    assert groups.state() is GroupState.COMPLETING_REBALANCE


def test_a_static_members_id_that_could_not_be_written_starts_a_rebalance() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.holds_writes = True
    waiter = groups.join(name="b2", instance_id="b")
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert groups.joined(waiter).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.state() is GroupState.PREPARING_REBALANCE


def test_a_group_is_dead_between_its_deletion_and_the_tombstones() -> None:
    groups = Coordinator()
    groups.commit(5)
    groups.holds_writes = True
    waiter = groups.delete_group()
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.state() is GroupState.DEAD
    assert groups.joined(groups.join()).error is unavailable
    assert groups.committed(groups.commit(6)).error is unavailable
    assert groups.deleted(groups.delete_group()).error is ErrorCode.GROUP_ID_NOT_FOUND
    groups.store_all()
    assert groups.deleted(waiter).error is ErrorCode.NONE
    assert groups.shard.list_groups() == []


def test_a_deletion_takes_the_commit_along_that_was_on_its_way() -> None:
    groups = Coordinator(holds_writes=True)
    groups.commit(5)
    groups.delete_group()
    groups.store_all()
    groups.restart()
    assert groups.committed_offset() is None
    assert groups.shard.list_groups() == []


def test_a_deletion_that_could_not_be_written_leaves_the_group() -> None:
    groups = Coordinator()
    groups.commit(5)
    groups.holds_writes = True
    waiter = groups.delete_group()
    groups.fail_one(ErrorCode.NOT_COORDINATOR)
    assert groups.deleted(waiter).error is ErrorCode.NOT_COORDINATOR
    assert groups.state() is GroupState.EMPTY
    assert groups.committed_offset() == 5


def test_whoever_waits_is_sent_away_when_the_coordinator_resigns() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    groups.holds_writes = True
    joining = groups.join("a", protocols=(("range", b"changed"),))
    committing = groups.commit(5, group_id="simple")
    groups.take(groups.shard.resign(groups.now))
    gone = ErrorCode.NOT_COORDINATOR
    assert groups.joined(joining).error is gone
    assert groups.committed(committing).error is gone


def test_followers_and_leader_that_wait_for_an_assignment_are_sent_away_too() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    groups.holds_writes = True
    groups.join("a", protocols=(("range", b"changed"),))
    generation = groups.joined(groups.join("b")).generation
    waiters = [groups.sync("b", generation), groups.sync("a", generation, {})]
    groups.take(groups.shard.resign(groups.now))
    assert [groups.synced(waiter).error for waiter in waiters] == [ErrorCode.NOT_COORDINATOR] * 2


def test_a_write_that_completes_after_the_resignation_answers_nobody() -> None:
    """KAFKA-20634: a follower's progress completed the old coordinator's commits, and lost them."""
    groups = Coordinator(holds_writes=True)
    groups.commit(5)
    (write,) = groups.held
    groups.take(groups.shard.resign(groups.now))
    effects = groups.shard.stored(write.number, groups.now)
    assert effects.replies == []
    assert groups.committed_offset() is None


def test_a_restarted_coordinator_goes_on_with_the_stable_group() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b", instance_ids=True)
    groups.commit(5, member_id="a", generation=generation)
    before = groups.shard.describe(GROUP)
    groups.restart()
    assert groups.shard.describe(GROUP) == before
    assert groups.committed_offset() == 5
    groups.advance(9_999)
    assert groups.members == ["a", "b"], "both have a session timeout to be heard"
    assert groups.heartbeat("b", generation, instance_id="b") is ErrorCode.NONE
    groups.advance(1)
    assert groups.members == ["b"]


def test_a_generation_that_never_got_an_assignment_is_not_on_record() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    groups.join(name="b")
    groups.join("a")
    groups.restart()
    assert groups.members == ["a"]
    assert groups.heartbeat("a", generation + 1) is ErrorCode.ILLEGAL_GENERATION


def test_an_empty_group_comes_back_with_its_generation() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    groups.leave("a")
    groups.restart()
    assert groups.state() is GroupState.EMPTY
    assert groups.joined(groups.join(name="b")).generation == generation + 2


def test_the_records_are_in_kafkas_own_formats() -> None:
    groups = Coordinator()
    groups.commit(42)
    groups.commit(43, retention_ms=60_000)
    keys_and_values = [encode_record(record) for record in groups.log]
    key, value = keys_and_values[0]
    assert key == b"\0\1" + b"\0\5group" + b"\0\6orders" + b"\0\0\0\0"
    assert value is not None
    assert (
        value[:18] == b"\0\3" + b"\0\0\0\0\0\0\0\x2a" + b"\xff\xff\xff\xff" + b"\0\0" + value[16:18]
    )
    _, expiring = keys_and_values[1]
    assert expiring is not None
    assert expiring[:2] == b"\0\1", "only version 1 can say when a commit expires"


def test_every_record_comes_back_from_its_bytes() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.leave("a", "b")
    groups.commit(42, metadata="m", leader_epoch=3)
    groups.delete_group()
    assert len(groups.log) >= 5
    for record in groups.log:
        assert decode_record(*encode_record(record)) == record


def test_records_of_kinds_that_are_not_known_are_skipped() -> None:
    assert decode_record(b"\0\13" + b"\0\5group", b"\0\0anything") is None


def test_deleting_a_topic_deletes_its_commits_in_every_group() -> None:
    groups = Coordinator()
    groups.commit(5, topic="orders")
    groups.commit(6, topic="orders", group_id="another")
    groups.commit(7, topic="stays")
    groups.take(groups.shard.forget_topics(frozenset({"orders"}), groups.now))
    assert groups.committed_offset("orders") is None
    assert groups.shard.committed("another") == {}
    assert groups.committed_offset("stays") == 7


def subscription(*topics: str) -> tuple[tuple[str, bytes], ...]:
    """A consumer's metadata: version 0, its topics, no user data."""
    names = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics)
    data = b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
    return (("range", data),)


def stable_reader(groups: Coordinator, *topics: str) -> int:
    generation = groups.joined(groups.join(name="m", protocols=subscription(*topics))).generation
    groups.sync("m", generation, {"m": b"all"})
    return generation


def test_offsets_of_a_topic_that_members_read_are_not_deleted() -> None:
    groups = Coordinator()
    generation = stable_reader(groups, "orders")
    for topic in ("orders", "unread"):
        groups.commit(5, topic=topic, member_id="m", generation=generation)
    refused = groups.deleted(groups.delete_offset("orders")).refused_partitions
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert refused == {TopicPartition("orders", 0): subscribed}
    assert groups.deleted(groups.delete_offset("unread")).refused_partitions == {}
    assert groups.committed_offset("orders") == 5
    assert groups.committed_offset("unread") is None


def test_offsets_of_a_group_that_is_no_consumers_are_deleted_only_when_it_is_empty() -> None:
    groups = Coordinator()
    groups.commit(5)
    groups.join(name="m", protocol_type="connect")
    assert groups.deleted(groups.delete_offset()).error is ErrorCode.NON_EMPTY_GROUP
    groups.leave("m")
    assert groups.deleted(groups.delete_offset()).error is ErrorCode.NONE
    assert groups.committed_offset() is None


def test_deleting_an_offset_of_no_group_or_no_commit() -> None:
    groups = Coordinator()
    assert groups.deleted(groups.delete_offset()).error is ErrorCode.GROUP_ID_NOT_FOUND
    groups.commit(5)
    assert groups.deleted(groups.delete_offset("never")).error is ErrorCode.NONE


RETENTION_MS = NO_DELAY.offsets_retention_ms


def expire(groups: Coordinator) -> None:
    groups.take(groups.shard.expire_offsets(groups.now))


def test_offsets_of_a_group_expire_only_after_it_was_empty_for_the_retention_time() -> None:
    groups = Coordinator()
    generation = stable_reader(groups, "orders")
    groups.commit(5, member_id="m", generation=generation)
    groups.advance(5_000)
    groups.leave("m")
    groups.advance(RETENTION_MS - 1)
    expire(groups)
    assert groups.committed_offset() == 5
    groups.advance(1)
    expire(groups)
    assert groups.committed_offset() is None
    assert groups.shard.describe(GROUP) is None, "nothing is left of the group"


def test_commits_without_a_group_expire_by_their_own_age() -> None:
    groups = Coordinator()
    groups.commit(5, topic="old")
    groups.advance(RETENTION_MS - 1)
    groups.commit(5, topic="young")
    groups.advance(1)
    expire(groups)
    assert groups.committed_offset("old") is None
    assert groups.committed_offset("young") == 5


def test_a_stable_group_keeps_what_it_reads_and_loses_what_it_read_once() -> None:
    groups = Coordinator()
    generation = stable_reader(groups, "orders")
    for topic in ("orders", "once"):
        groups.commit(5, topic=topic, member_id="m", generation=generation)
    for _ in range(RETENTION_MS // 9_000 // 1_000 + 1):
        groups.ticks_ms += 9_000_000  # No tick in between: the member is alive all the time.
        groups.heartbeat("m", generation)
    expire(groups)
    assert groups.committed_offset("orders") == 5
    assert groups.committed_offset("once") is None


def test_a_commit_that_says_when_it_expires_goes_then() -> None:
    groups = Coordinator()
    groups.commit(5, retention_ms=1_000)
    groups.advance(1_000)
    expire(groups)
    assert groups.committed_offset() is None


def test_a_commit_that_is_to_be_kept_for_longer_than_there_are_numbers_is_kept() -> None:
    groups = Coordinator()
    groups.commit(5, retention_ms=2**63 - 1)
    key, value = encode_record(groups.log[-1])
    assert decode_record(key, value) == groups.log[-1]
    groups.advance(10 * RETENTION_MS)
    expire(groups)
    assert groups.committed_offset() == 5


def test_a_commit_on_its_way_keeps_its_partition_from_expiring() -> None:
    groups = Coordinator()
    groups.commit(5)
    groups.advance(RETENTION_MS)
    groups.holds_writes = True
    groups.commit(6)
    expire(groups)
    groups.store_all()
    assert groups.committed_offset() == 6


@pytest.mark.parametrize("group_id", ["", GROUP])
def test_a_member_needs_a_group_with_a_name(group_id: str) -> None:
    groups = Coordinator()
    error = groups.joined(groups.join(group_id=group_id)).error
    assert error is (ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID)
