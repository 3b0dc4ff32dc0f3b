"""What the cluster's metadata is made of: brokers, topics, wishes; and their plain forms.

A plain form is what JSON can hold: commands and snapshots are written so, small, rare and readable
in a dump.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from operator import index
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from tidemark.partitions.state_machines.access.acls import Acl, acl_of_plain, plain_acl
from tidemark.partitions.state_machines.access.users import (
    UserChange,
    change_of_plain,
    plain_change,
)
from tidemark.partitions.state_machines.client_quotas import QuotaChange, plain_entity
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

Assignment: TypeAlias = tuple[NodeId, ...]
"""The brokers that hold one partition's replicas. The first one is to lead, if it can."""


class PartitionId(NamedTuple):
    """A partition, whatever its topic is called."""

    topic_id: UUID
    partition: int


class BrokerState(StrEnum):
    """What an operator wants of a broker. It outlives the broker's starts."""

    ACTIVE = "active"
    DRAINING = "draining"
    """It leads nothing that another can lead; it keeps its replicas and its votes."""
    DECOMMISSIONING = "decommissioning"
    """Its replicas move away as well, for it will not come back."""


class BrokerAddress(NamedTuple):
    """Where a broker can be reached from elsewhere."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetadata:
    """A broker as it registered at its last start."""

    node_id: NodeId
    directory_id: UUID
    """Of its data directory, drawn when that was made: a broker is what its disk holds."""
    incarnation: int
    """How many times that directory has been opened. The highest one is the living broker."""
    listeners: Mapping[str, BrokerAddress]
    """Where clients connect, by the listener's name."""
    peer: BrokerAddress
    """Where the other brokers connect."""
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """One topic. `configs` are its overrides alone, as text."""

    name: str
    id: UUID
    assignments: tuple[Assignment, ...]
    """One for each partition. Of one length, unless replicas were added to some or removed."""
    configs: Mapping[str, str]
    created_ms: int
    wanted: Mapping[int, Assignment] = field(default_factory=dict)
    """Where replicas are being moved: what the assignment of that partition is to become."""
    wanted_at: Mapping[int, int] = field(default_factory=dict)
    """The metadata's version when that was wished: no two wishes have the same."""
    leaving: Mapping[int, Assignment] = field(default_factory=dict)
    """Where earlier wishes wanted replicas, that were replaced before they had come true. Perhaps
    they vote by now; they keep what they hold until the wish in force has come true."""
    observers: Mapping[int, Assignment] = field(default_factory=dict)
    """The brokers that hold a copy of that partition without a vote, where there are any."""

    @property
    def partitions(self) -> int:
        return len(self.assignments)

    def hosts(self, partition: int) -> frozenset[NodeId]:
        """Every broker that has to hold something of that partition now."""
        others = (self.wanted, self.leaving, self.observers)
        if not any(others):
            return frozenset(self.assignments[partition])
        return frozenset(self.assignments[partition]).union(
            *(each.get(partition, ()) for each in others)
        )

    def is_host(self, node: NodeId, partition: int) -> bool:
        """Whether it is one of them. Asked of thousands of partitions."""
        return node in self.assignments[partition] or any(
            node in each.get(partition, ())
            for each in (self.wanted, self.leaving, self.observers)
            if each
        )

    def replicas(self, partition: int) -> Assignment:
        """Who is to vote on that partition, its preferred leader first, then who does so still."""
        if not (self.wanted or self.leaving):
            return self.assignments[partition]
        wanted = self.wanted.get(partition, ())
        leaving = (*self.assignments[partition], *self.leaving.get(partition, ()))
        return tuple(dict.fromkeys((*wanted, *leaving)))

    @property
    def replication_factor(self) -> int:
        return len(self.assignments[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMove:
    """A wish that another broker lead a partition. At most one for each."""

    topic_id: UUID
    partition: int
    target: NodeId
    deadline_ms: int
    """Time of day, in milliseconds since 1970. What has not happened by then is given up."""
    reason: str
    """A sentence for people."""

    @property
    def id(self) -> PartitionId:
        return PartitionId(self.topic_id, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOutcome:
    """What became of a leader's move; of the one to that broker, by that deadline, and no other."""

    topic_id: UUID
    partition: int
    target: NodeId
    deadline_ms: int
    failure: str | None
    """Why the leader stayed, or went elsewhere; `None` if the target leads."""
    attempts: int = 0
    """How often writes were held; 0 also where that is not known."""
    catch_up_us: int = 0
    """How long it took, in microseconds, until they were held for the last time."""
    pause_us: int = 0
    """How long they were held in all."""

    @property
    def id(self) -> PartitionId:
        return PartitionId(self.topic_id, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """Which brokers are to hold a partition; `None` for those that held it when the last change
    was begun: it is cancelled."""

    topic_id: UUID
    partition: int
    replicas: Assignment | None
    """The preferred leader first."""
    at: int = -1
    """Where one is finished: which wish this is, by `TopicMetadata.wanted_at`."""


# Any: JSON's own values, here and below.
def plain(value: object) -> Any:
    """The plain form of a value that a command or a snapshot holds."""
    match value:
        case UUID():
            return str(value)
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case Acl():
            return plain_acl(value)
        case UserChange():
            return plain_change(value)
        case bytes():
            return value.hex()
        case tuple():
            return [plain(each) for each in value]
        case LeaderMove() | MoveOutcome() | Reassignment() | QuotaChange():
            return {name: plain(getattr(value, name)) for name in type(value).__slots__}
    return value


def broker_body(broker: BrokerMetadata) -> dict[str, Any]:
    return {name: plain(getattr(broker, name)) for name in BrokerMetadata.__slots__}


def topic_body(topic: TopicMetadata) -> dict[str, Any]:
    return {name: plain(getattr(topic, name)) for name in TopicMetadata.__slots__}


def from_plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that `body` stands for. Raises what a wrong body makes its parts raise."""
    return {name: _READERS.get(name, _as_it_is)(value) for name, value in body.items()}


def _as_it_is(value: Any) -> Any:
    return value


def _listeners(body: Any) -> dict[str, BrokerAddress]:
    return {name: BrokerAddress(*address) for name, address in body.items()}


def _assignments(body: Any) -> tuple[Assignment, ...]:
    return tuple(_nodes(tuple(each)) for each in body)


@lru_cache(maxsize=1024)
def _nodes(nodes: tuple[int, ...]) -> Assignment:
    """One for all partitions that are assigned alike: there may be thousands."""
    return tuple(NodeId(int(node)) for node in nodes)


def _by_partition(body: Any) -> dict[int, Assignment]:
    return {
        int(partition): tuple(NodeId(int(node)) for node in each)
        for partition, each in body.items()
    }


def _quota_change(body: Any) -> QuotaChange:
    return QuotaChange(entity=plain_entity(body["entity"]), values=dict(body["values"]))


def _acls(body: Any) -> tuple[Acl, ...]:
    return tuple(acl_of_plain(each) for each in body)


_READERS: Final[Mapping[str, Any]] = {
    # Whole numbers, and nothing that is like one: what counts with them would go wrong later.
    **dict.fromkeys(("at_version", "partition", "count", "target", "deadline_ms", "at"), index),
    "id": UUID,
    "directory_id": UUID,
    "configs": dict,
    "listeners": _listeners,
    "peer": lambda body: BrokerAddress(*body),
    "assignments": _assignments,
    "added": _acls,
    "removed": _acls,
    "credentials": lambda body: tuple(map(change_of_plain, body)),
    "salt_secret": bytes.fromhex,
    "wanted": _by_partition,
    "wanted_at": lambda body: {int(partition): int(at) for partition, at in body.items()},
    "leaving": _by_partition,
    "observers": _by_partition,
    "topic_id": UUID,
    "state": BrokerState,
    "moves": lambda body: tuple(LeaderMove(**from_plain(each)) for each in body),
    "outcomes": lambda body: tuple(MoveOutcome(**from_plain(each)) for each in body),
    "changes": lambda body: tuple(map(_quota_change, body)),
    "reassignments": lambda body: tuple(Reassignment(**from_plain(each)) for each in body),
    "replicas": lambda body: None if body is None else tuple(NodeId(int(each)) for each in body),
}
"""How a field of that name is read; all others are as JSON has them."""
