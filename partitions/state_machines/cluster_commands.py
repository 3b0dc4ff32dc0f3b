"""The commands that change the cluster's metadata, and their bytes.

A command names the version it was decided at; it applies to that version and to no other. So what
was checked before it was made durable still holds when it is applied, on this node and on every
other. Its bytes are JSON with the command's name under "do": small, rare, and readable in a dump.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, get_args
from uuid import UUID

from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId, ProducerId


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCluster:
    """Gives the cluster its id: the first command, once."""

    at_version: int
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    at_version: int
    name: str
    id: UUID
    partitions: int
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
    """Raises the number of the topic's partitions to `partitions`."""

    at_version: int
    id: UUID
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIds:
    """Hands the next `count` producer ids to one broker."""

    at_version: int
    node_id: NodeId
    count: int


Command = (
    FoundCluster
    | CreateTopic
    | DeleteTopic
    | SetTopicConfigs
    | CreatePartitions
    | AllocateProducerIds
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
    for field in fields(command):
        value = getattr(command, field.name)
        body[field.name] = _plain(value)
    return json.dumps(body, separators=(",", ":"), sort_keys=True).encode()


def decode_command(data: bytes) -> Command:
    """Raises `StorageError` for bytes that are no command of this version of Tidemark."""
    try:
        body = json.loads(data)
        command = _BY_NAME[body.pop("do")]
        if "id" in body:
            body["id"] = UUID(body["id"])
        if "configs" in body:
            body["configs"] = dict(body["configs"])
        decoded: Command = command(**body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"a metadata command that cannot be read: {error!r}") from error
    return decoded


# Any: JSON's own values.
def _plain(value: object) -> Any:
    match value:
        case UUID():
            return str(value)
        case Mapping():
            return dict(value)
    return value
