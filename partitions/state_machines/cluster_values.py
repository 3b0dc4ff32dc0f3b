"""What the cluster's metadata is made of: its brokers and its topics, and their plain forms.

A plain form is what JSON can hold: commands and snapshots are written so, small, rare and readable
in a dump.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from tidemark.protocol.types import NodeId

Assignment: TypeAlias = tuple[NodeId, ...]
"""The brokers that hold one partition's replicas. The first one is to lead, if it can."""


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
    """One for each partition. Invariant: all of one length."""
    configs: Mapping[str, str]
    created_ms: int

    @property
    def partitions(self) -> int:
        return len(self.assignments)

    @property
    def replication_factor(self) -> int:
        return len(self.assignments[0])


# Any: JSON's own values, here and below.
def plain(value: object) -> Any:
    """The plain form of a value that a command or a snapshot holds."""
    match value:
        case UUID():
            return str(value)
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case tuple():
            return [plain(each) for each in value]
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
    return tuple(tuple(NodeId(int(node)) for node in each) for each in body)


_READERS: Final[Mapping[str, Any]] = {
    "id": UUID,
    "directory_id": UUID,
    "configs": dict,
    "listeners": _listeners,
    "peer": lambda body: BrokerAddress(*body),
    "assignments": _assignments,
}
"""How a field of that name is read; all others are as JSON has them."""
