"""What a consumer group commits, and how it ends or becomes one of the other kind."""

from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    settle,
    state,
)
from tests.partitions.state_machines.groups.driver import GROUP, Coordinator
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroupState
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey

NONE = ErrorCode.NONE


def test_a_commit_needs_the_members_epoch(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)

    def commit(member_id: str, epoch: int) -> ErrorCode:
        return groups.committed(groups.commit(5, member_id=member_id, generation=epoch)).error

    assert commit("a", first.epoch) is NONE
    assert commit("a", first.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", first.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("z", first.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID, "nobody may commit beside the members"
    first.leave()
    second.leave()
    assert commit("", -1) is NONE


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


def test_a_member_is_removed_by_an_administrator(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b")
    settle(first, second)
    assert groups.leave("b", "z") == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    first.beat()
    assert len(first.owned) == 4


# The log
