"""The coordinator's state from its log: what a new leader, or a restarted broker, starts with."""

from tidemark.partitions.state_machines.groups.consumer import restoring
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.offsets import OffsetTable
from tidemark.partitions.state_machines.groups.requests import GroupState, Join
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.partitions.state_machines.groups.topic_view import NO_TOPICS, TopicView
from tidemark.partitions.state_machines.instant import Instant
from tidemark.protocol.messages.consumer_group_records import ConsumerGroupMetadataKey
from tidemark.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
)
from tidemark.protocol.types import ProducerId


class Replay:
    """Feed it the records of the log in order, then `finish`."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupMetadataValue] = {}
        self._consumers: dict[str, restoring.Records] = {}
        self._leftovers: dict[str, restoring.Records] = {}
        self._offsets = OffsetTable()

    def apply(self, record: LogRecord) -> None:
        key, value = record
        match key:
            case OffsetCommitKey():
                self._offsets.apply([record])
            case GroupMetadataKey():
                self._groups.pop(key.group, None)
                if value is not None:
                    assert isinstance(value, GroupMetadataValue)
                    self._groups[key.group] = value
                    # A group is of one kind at a time, and the log's last word says of which.
                    self._leftovers[key.group] = self._consumers.pop(key.group, {})
            case _ if value is None:
                self._consumers.get(key.group, {}).pop(key, None)
            case _:
                self._consumers.setdefault(key.group, {})[key] = value
                if isinstance(key, ConsumerGroupMetadataKey):
                    self._groups.pop(key.group, None)

    def apply_undecided(self, record: LogRecord, producer_id: ProducerId) -> None:
        """A commit in a transaction that has no marker. Those come last, in their order."""
        self._offsets.apply([record], producer_id)

    def finish(
        self, settings: GroupSettings, at: Instant, topics: TopicView = NO_TOPICS
    ) -> GroupShard:
        """The shard. Its members have a session timeout from now to be heard."""
        groups = [_restore(group_id, value, at) for group_id, value in self._groups.items()]
        for group in groups:
            group.leftovers = frozenset(self._leftovers.get(group.id, ()))
        consumers = [
            restoring.restore(group_id, records, settings, at)
            for group_id, records in self._consumers.items()
            if group_id not in self._groups and records
        ]
        known = {group.id for group in groups} | {group.id for group in consumers}
        simple = [
            ClassicGroup(group_id, wall_ms=at.wall_ms)
            for group_id in self._offsets.groups()
            if group_id not in known
        ]
        return GroupShard(
            settings,
            offsets=self._offsets,
            groups=[*groups, *consumers, *simple],
            topics=topics,
        )


def _restore(group_id: str, value: GroupMetadataValue, at: Instant) -> ClassicGroup:
    group = ClassicGroup(group_id, wall_ms=value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    for stored in value.members:
        member = Member(stored.member_id, _as_join(group_id, value, stored))
        member.assignment = stored.assignment
        group.add(member)
        group.expect_heartbeat(member, at.ticks_ms)
    if group.members:
        group.state = GroupState.STABLE
        if value.leader in group.members:
            group.leader = value.leader
    return group


def _as_join(group_id: str, value: GroupMetadataValue, stored: MemberMetadata) -> Join:
    """The request that would have brought the member in. Of its protocols one is on record."""
    return Join(
        group_id=group_id,
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        protocol_type=value.protocol_type,
        protocols=((value.protocol or "", stored.subscription),),
        session_timeout_ms=stored.session_timeout,
        # The oldest records have no rebalance timeout.
        rebalance_timeout_ms=max(stored.rebalance_timeout, 0) or stored.session_timeout,
        new_member_id=stored.member_id,
    )
