"""What a consumer group commits, and how it ends or becomes one of the other kind."""

from dataclasses import replace

import pytest

from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    group_of,
    settle,
    state,
)
from tests.partitions.state_machines.groups.driver import GROUP, Coordinator
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroupState
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.requests import GroupState, Leave, Leaver
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey

NONE = ErrorCode.NONE


def test_a_commit_needs_the_members_epoch(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)

    def commit(member_id: str, epoch: int) -> ErrorCode:
        return groups.committed(groups.commit(5, member_id=member_id, generation=epoch)).error

    assert commit("a", first.epoch) is NONE
    assert commit("a", 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", first.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("z", first.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID, "nobody may commit beside the members"
    first.leave()
    second.leave()
    assert commit("", -1) is NONE


def test_an_older_epoch_will_do_for_what_a_member_has_held_since(groups: Coordinator) -> None:
    """KIP-1251: it may not have heard of a newer one, as while its heartbeat is under way."""
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first)

    def commit(
        epoch: int, *partitions: int, member: Member = first, topic: str = "orders"
    ) -> ErrorCode:
        asked = groups.commit(
            5, member_id=member.id, generation=epoch, partitions=partitions, topic=topic
        )
        return groups.committed(asked).error

    alone = first.epoch
    assert commit(alone, 0, 1, 2, 3) is NONE
    settle(second, first)
    shared = first.epoch
    kept = sorted(each.partition for each in first.owned)
    given = sorted(each.partition for each in second.owned)
    assert shared > alone
    assert kept
    assert given
    assert commit(alone, *kept) is NONE
    assert commit(alone - 1, *kept) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(alone, *given) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(alone, kept[0], given[0]) is ErrorCode.STALE_MEMBER_EPOCH, "all or nothing"
    assert commit(alone, 0, topic="unheard-of") is ErrorCode.STALE_MEMBER_EPOCH
    second.leave()
    settle(first)
    for epoch in (alone, shared):
        assert commit(epoch, *given) is ErrorCode.STALE_MEMBER_EPOCH, "another has read them since"
    assert commit(alone, *kept) is NONE
    groups.restart()
    assert commit(alone, *kept) is NONE, "a coordinator that takes over knows it from the log"
    assert commit(alone, *given) is ErrorCode.STALE_MEMBER_EPOCH
    third = Member(groups, "c")
    settle(third, first)
    assert commit(alone, *sorted(each.partition for each in first.owned)) is NONE


def test_a_log_of_a_former_release_says_nothing_of_epochs_before(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first)
    alone = first.epoch
    settle(second, first)
    groups.log = [_as_formerly(record) for record in groups.log]
    groups.restart()

    def commit(epoch: int) -> ErrorCode:
        kept = sorted(each.partition for each in first.owned)
        asked = groups.commit(5, member_id="a", generation=epoch, partitions=kept)
        return groups.committed(asked).error

    restarted = first.epoch
    assert commit(alone) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(restarted) is NONE
    settle(Member(groups, "c"), first)
    assert first.epoch > restarted
    assert commit(restarted) is NONE
    assert commit(alone) is ErrorCode.STALE_MEMBER_EPOCH


def _as_formerly(record: LogRecord) -> LogRecord:
    if not isinstance(record.value, ConsumerGroupCurrentMemberAssignmentValue):
        return record
    assigned = tuple(
        replace(each, assignment_epochs=None) for each in record.value.assigned_partitions
    )
    return LogRecord(record.key, replace(record.value, assigned_partitions=assigned))


def test_an_older_epoch_will_do_for_what_a_member_has_yet_to_give_up(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first)
    alone = first.epoch
    settle(Member(groups, "c", reads=("clicks",)), first)
    second.beat()
    first.beat(says_owned=False)
    has = group_of(groups).members["a"]
    assert has.revoking
    assert has.epoch > alone
    asked = groups.commit(5, member_id="a", generation=alone, partitions=range(4))
    assert groups.committed(asked).error is NONE


def test_the_log_says_since_when_a_member_has_had_what_it_is_to_give_up(
    groups: Coordinator,
) -> None:
    first = Member(groups, "a")
    settle(first)
    alone = first.epoch
    settle(Member(groups, "b"), first)
    Member(groups, "c").beat()
    Member(groups, "d").beat()
    first.beat(says_owned=False)
    groups.restart()
    restored = group_of(groups).members["a"]
    assert restored.epoch > alone
    assert restored.revoking
    assert restored.has_held(restored.revoking, since=alone)
    assert not restored.has_held(restored.revoking, since=alone - 1)


@pytest.mark.parametrize("name", ["before", "after"], ids=["same id", "another id"])
def test_a_static_member_that_is_back_has_held_nothing_since_before(
    groups: Coordinator, name: str
) -> None:
    """What it held until then another process has read, which may be there yet."""
    member, other = Member(groups, "before", instance_id="i"), Member(groups, "b")
    settle(member)
    old = member.epoch
    member.leave(for_a_while=True)
    settle(other)
    back = Member(groups, name, instance_id="i")
    settle(back, other)
    assert back.epoch > old
    assert back.owned
    for partition in sorted(each.partition for each in back.owned):
        asked = groups.commit(5, member_id=name, generation=old, partitions=[partition])
        assert groups.committed(asked).error is ErrorCode.STALE_MEMBER_EPOCH
    asked = groups.commit(5, member_id="before", generation=old)
    assert groups.committed(asked).error is not NONE


# The other kind


def test_an_empty_group_becomes_one_of_the_other_kind_and_keeps_its_commits(
    groups: Coordinator,
) -> None:
    generation = groups.form("classic")
    groups.commit(7, member_id="classic", generation=generation)
    member = Member(groups, "a")
    assert member.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert "classic protocol" in (member.message or "")
    groups.leave("classic")
    assert member.beat() is NONE
    assert member.epoch > generation
    assert groups.committed_offset() == 7
    groups.restart()
    assert state(groups) is ConsumerGroupState.STABLE

    joined = groups.join(name="classic")
    assert groups.joined(joined).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    assert groups.form("classic") > member.epoch
    groups.restart()
    assert groups.state() is GroupState.STABLE
    assert groups.committed_offset() == 7


def test_of_a_group_that_became_another_kind_nothing_is_left_in_the_log(
    groups: Coordinator,
) -> None:
    groups.form("classic")
    groups.leave("classic")
    Member(groups, "a").beat()
    last = dict(groups.log)
    assert last[GroupMetadataKey(group=GROUP)] is None
    groups.leave("a")
    groups.form("classic")
    last = dict(groups.log)
    assert [key for key, value in last.items() if value is not None] == [
        GroupMetadataKey(group=GROUP)
    ]


def test_a_group_with_members_is_not_deleted(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.commit(3, member_id="a", generation=member.epoch)
    assert groups.deleted(groups.delete_group()).error is ErrorCode.NON_EMPTY_GROUP
    refused = groups.deleted(groups.delete_offset())
    assert list(refused.refused_partitions.values()) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    member.leave()
    assert groups.deleted(groups.delete_group()).error is NONE
    groups.restart()
    assert groups.shard.list_groups() == []
    assert groups.committed_offset() is None


@pytest.mark.parametrize("is_stored", [True, False])
def test_nobody_waits_for_a_group_that_is_being_deleted(
    groups: Coordinator, is_stored: bool
) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.holds_writes = True
    beat, left = member.send(full=True), groups.ask(member.leaving())
    joining, other_left = Member(groups, "b").send(), groups.ask(Member(groups, "b").leaving())
    deleted = groups.delete_group()
    gone = groups.ask(Leave(group_id=GROUP, leavers=(Leaver(member_id="a"),)))
    synced = groups.sync("a", member.epoch)
    while groups.held:
        groups.store_one() if is_stored else groups.fail_one(ErrorCode.NOT_COORDINATOR)
    assert (groups.deleted(deleted).error is NONE) is is_stored
    for waiter in (beat, left, joining, other_left, gone, synced):
        assert not groups.waits(waiter)
    assert groups.synced(synced).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_was_deleted_has_left_nothing_of_another_kind(groups: Coordinator) -> None:
    Member(groups, "a").beat()
    groups.holds_writes = True
    groups.ask(Leave(group_id=GROUP, leavers=(Leaver(member_id="a"),)))
    groups.join(requires_member_id=True)
    deleted = groups.delete_group()
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.store_all()
    assert groups.deleted(deleted).error is NONE
    groups.restart()
    assert groups.shard.list_groups() == []


def test_a_member_is_removed_by_an_administrator(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b")
    settle(first, second)
    assert groups.leave("b", "z") == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    first.beat()
    assert len(first.owned) == 4


# The log
