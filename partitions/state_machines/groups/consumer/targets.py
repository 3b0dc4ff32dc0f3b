"""When a group needs another target, and how it gets one."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final
from uuid import UUID

from tidemark.partitions.state_machines.groups.consumer.assignors import ASSIGNORS, Subscriber
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember
from tidemark.partitions.state_machines.groups.consumer.pattern import Pattern
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    TopicFacts,
    TopicView,
)
from tidemark.protocol.values import dataclass

_TOPICS_NAMED: Final = 3
"""Topics that a reason names; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics, and a number that is another one whenever they are others."""

    view: TopicView
    version: int


def refresh(group: ConsumerGroup, topics: Topics, turn: Turn) -> str:
    """Look at the topics again if they may have changed; why that changes the target, or ''."""
    if group.topics_version == topics.version:
        return ""
    group.topics_version = topics.version
    now = _subscribed(group, topics)
    before, hash_before = group.topics, group.topics_hash
    group.topics, group.topics_hash = now, _hash(now)
    if group.topics_hash == hash_before:
        return ""
    return _difference(before, now) if before else "topics have changed"


def have_changed(group: ConsumerGroup, topics: Topics) -> bool:
    """Whether `refresh` would find other topics. Asked where nothing can be written."""
    if group.topics_version == topics.version:
        return False
    return _hash(_subscribed(group, topics)) != group.topics_hash


def begin_epoch(group: ConsumerGroup, reason: str, turn: Turn) -> None:
    """There may have to be another target, for this reason."""
    group.epoch += 1
    group.state_since_ms = turn.at.wall_ms
    group.history.note(group.epoch, turn.at.wall_ms, reason)
    group.recording.is_touched = True


def make_target(group: ConsumerGroup, topics: Topics, turn: Turn) -> None:
    """Decide who is to read what in the group's present epoch."""
    group.topics = facts = _subscribed(group, topics)
    group.topics_hash = _hash(facts)
    group.assignor = _elect_assignor(group, turn)
    ids = _Ids(facts)
    subscribers = {
        member.id: Subscriber(
            topics=ids.of(_names(group, member)),
            before=group.target.get(member.id, NO_PARTITIONS),
            instance_id=member.instance_id,
        )
        for member in group.members.values()
    }
    counts = {each.id: each.partitions for each in facts.values()}
    group.set_target(ASSIGNORS[group.assignor](subscribers, counts))


class _Ids:
    """The ids of the topics that a member names. Most members name the same ones."""

    def __init__(self, facts: Mapping[str, TopicFacts]) -> None:
        self._facts = facts
        self._known: dict[frozenset[str], frozenset[UUID]] = {}

    def of(self, names: frozenset[str]) -> frozenset[UUID]:
        ids = self._known.get(names)
        if ids is None:
            ids = frozenset(self._facts[name].id for name in names if name in self._facts)
            self._known[names] = ids
        return ids


def hear(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> None:
    """A member speaks that may know of some topics: so, too, may those with its pattern that have
    not spoken to this broker yet. It is mostly the same user."""
    if member.pattern is not None and member.may_know is not None:
        pattern = group.patterns.get(member.pattern)
        if pattern is None:
            pattern = group.patterns[member.pattern] = Pattern(member.pattern)
            pattern.look_at(topics.view.names(), topics.version)
        pattern.heard = member.may_know


def sees_as(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> bool:
    """Whether the topics of both are the same, who may know of others or not."""
    return before.may_know == after.may_know or _names(group, before) == _names(group, after)


def subscribed_names(group: ConsumerGroup) -> frozenset[str]:
    """All topics that members name, or that match what they name."""
    return frozenset(name for member in group.members.values() for name in _names(group, member))


def _subscribed(group: ConsumerGroup, topics: Topics) -> Mapping[str, TopicFacts]:
    """Those of the topics that there are."""
    _match_patterns(group, topics)
    found = ((name, topics.view.find(name)) for name in sorted(subscribed_names(group)))
    return {name: facts for name, facts in found if facts is not None}


def _match_patterns(group: ConsumerGroup, topics: Topics) -> None:
    patterns = {m.pattern for m in group.members.values() if m.pattern is not None}
    for gone in group.patterns.keys() - patterns:
        del group.patterns[gone]
    for text in patterns:
        pattern = group.patterns.get(text) or group.patterns.setdefault(text, Pattern(text))
        pattern.look_at(topics.view.names(), topics.version)


def _names(group: ConsumerGroup, member: ConsumerMember) -> frozenset[str]:
    if member.pattern is None or member.pattern not in group.patterns:
        return member.topics
    return member.topics | group.patterns[member.pattern].shown_to(member.may_know)


def _elect_assignor(group: ConsumerGroup, turn: Turn) -> str:
    """What most members ask for, of those that ask; else the broker's first."""
    offered = turn.settings.consumer_assignors
    votes = [member.assignor for member in group.members.values() if member.assignor in offered]
    return max(offered, key=votes.count) if votes else offered[0]


def _hash(facts: Mapping[str, TopicFacts]) -> int:
    """64 bits that are others if the topics are; 0 for none."""
    if not facts:
        return 0
    digest = blake2b(digest_size=8)
    for name, each in sorted(facts.items()):
        digest.update(f"{name} {each.id} {each.partitions}\n".encode())
    return int.from_bytes(digest.digest(), signed=True)


def _difference(before: Mapping[str, TopicFacts], now: Mapping[str, TopicFacts]) -> str:
    changes = [
        *(f"{name} is there" for name in now if name not in before),
        *(f"{name} is gone" for name in before if name not in now),
        *(
            f"{name} has {facts.partitions} partitions"
            if facts.id == before[name].id
            else f"{name} was made anew"
            for name, facts in now.items()
            if name in before and facts != before[name]
        ),
    ]
    named = ", ".join(changes[:_TOPICS_NAMED])
    left = len(changes) - _TOPICS_NAMED
    return f"topics have changed: {named}" + (f" and {left} more" if left > 0 else "")
