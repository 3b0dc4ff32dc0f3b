"""The commands that change the cluster's metadata, and their bytes.

A command names the version it was decided at; it applies to that version and to no other. So what
was checked before it was made durable still holds when it is applied, on this node and on every
other. Its bytes are JSON with the command's name under "do": small, rare, and readable in a dump.
"""

import json
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final, get_args
from uuid import UUID

from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.users import UserChange
from tidemark.partitions.state_machines.client_quotas import QuotaChange
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerAddress,
    BrokerMetadata,
    BrokerState,
    LeaderMove,
    MoveOutcome,
    Reassignment,
    from_plain,
    plain,
)
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId, ProducerId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCluster:
    """Gives the cluster its id: the first command, once."""

    at_version: int
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    """Makes a broker known, or known again after a start; the fields are `BrokerMetadata`'s."""

    at_version: int
    node_id: NodeId
    directory_id: UUID
    incarnation: int
    listeners: Mapping[str, BrokerAddress]
    peer: BrokerAddress
    rack: str | None

    @property
    def broker(self) -> BrokerMetadata:
        return BrokerMetadata(
            node_id=self.node_id,
            directory_id=self.directory_id,
            incarnation=self.incarnation,
            listeners=self.listeners,
            peer=self.peer,
            rack=self.rack,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBroker:
    """Forgets a broker that will not come back. It must hold no replicas."""

    at_version: int
    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    at_version: int
    name: str
    id: UUID
    assignments: tuple[Assignment, ...]
    """One for each partition."""
    configs: Mapping[str, str]
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    at_version: int
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopicConfigs:
    """Replaces all of the topic's overrides by `configs`."""

    at_version: int
    id: UUID
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitions:
    """Adds partitions to a topic, one for each of `assignments`."""

    at_version: int
    id: UUID
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIds:
    """Hands the next `count` producer ids to one broker."""

    at_version: int
    node_id: NodeId
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLeaders:
    """Wishes that other brokers lead some partitions; refused as a whole or taken as a whole."""

    at_version: int
    moves: tuple[LeaderMove, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMoves:
    """Strikes wishes that have come true, or will not. Those that are not there are passed over."""

    at_version: int
    outcomes: tuple[MoveOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignPartitions:
    """Begins to move replicas, or to move them back; refused as a whole or taken as a whole."""

    at_version: int
    reassignments: tuple[Reassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishReassignments:
    """The groups have gone over to these replicas; those no longer wanted are passed over."""

    at_version: int
    reassignments: tuple[Reassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObservers:
    """Names the brokers that hold a copy of a partition without a vote; none is allowed."""

    at_version: int
    topic_id: UUID
    partition: int
    replicas: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBrokerState:
    at_version: int
    node_id: NodeId
    state: BrokerState


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterQuotas:
    """Sets and removes quotas of users and clients; refused as a whole or taken as a whole."""

    at_version: int
    changes: tuple[QuotaChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterAcls:
    """Removes some ACLs and adds others; refused as a whole or taken as a whole."""

    at_version: int
    added: tuple[Acl, ...]
    removed: tuple[Acl, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUsers:
    """Sets and removes credentials of users; refused as a whole or taken as a whole."""

    at_version: int
    credentials: tuple[UserChange, ...]
    salt_secret: bytes = field(repr=False)
    """Kept of the first such command: see `UserTable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBrokerConfigs:
    """Replaces what was set for one broker while it runs, or for all brokers, by `configs`."""

    at_version: int
    node_id: NodeId | None
    """`None`: all brokers."""
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGroupConfigs:
    """Replaces what was set for one group by `configs`. The group need not be there."""

    at_version: int
    group_id: str
    configs: Mapping[str, str]


Command = (
    FoundCluster
    | RegisterBroker
    | UnregisterBroker
    | CreateTopic
    | DeleteTopic
    | SetTopicConfigs
    | CreatePartitions
    | AllocateProducerIds
    | MoveLeaders
    | EndMoves
    | ReassignPartitions
    | FinishReassignments
    | SetObservers
    | SetBrokerState
    | AlterQuotas
    | AlterAcls
    | AlterUsers
    | SetBrokerConfigs
    | SetGroupConfigs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """Producer ids that one broker may hand out: from `first` on, below `end`."""

    first: ProducerId
    end: ProducerId


_BY_NAME: Final = {command.__name__: command for command in get_args(Command)}


def encode_command(command: Command) -> bytes:
    # Any: JSON's own values.
    body: dict[str, Any] = {"do": type(command).__name__}
    for each in fields(command):
        body[each.name] = plain(getattr(command, each.name))
    return json.dumps(body, separators=(",", ":"), sort_keys=True).encode()


def decode_command(data: bytes) -> Command:
    """Raises `StorageError` for bytes that are no command of this version of Tidemark."""
    try:
        body = json.loads(data)
        name = body.pop("do")
        if isinstance(name, str) and name not in _BY_NAME:
            raise StorageError(
                f"a metadata command that cannot be read: this version of Tidemark knows no {name}"
            )
        decoded: Command = _BY_NAME[name](**from_plain(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"a metadata command that cannot be read: {error!r}") from error
    return decoded
