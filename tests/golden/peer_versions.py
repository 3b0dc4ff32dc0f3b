"""What each version of the protocol between brokers has said, as digests in `peer_versions.json`,
oldest first.

Brokers of one version take it that they read each other's messages alike, and the commands in the
cluster's metadata. So a change of a message, of its bytes or of what its declaration says that a
field means, is a new version of all messages, and so is a new command, or config; or a change of
the last version, if no release has spoken that yet.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, get_args

from tidemark.broker.handlers import BETWEEN_BROKERS
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.users import Credential, Mechanism, UserChange
from tidemark.partitions.state_machines.client_quotas import EntityType, QuotaChange
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.state_machines.cluster_values import (
    BrokerState,
    LeaderMove,
    MoveOutcome,
    Reassignment,
)
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.acls import Operation, PatternType, Permission, ResourceType
from tidemark.protocol.peer_registry import PEER_APIS
from tidemark.protocol.reference import message_tables
from tidemark.protocol.registry import APIS

FILE: Final = Path(__file__).with_name("peer_versions.json")
_DIGITS: Final = 16
# What commands are made of, beside numbers and texts.
_PARTS: Final = (Acl, Credential, LeaderMove, MoveOutcome, QuotaChange, Reassignment, UserChange)
_WORDS: Final = (
    BrokerState,
    EntityType,
    Mechanism,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


class Recorded(NamedTuple):
    version: int
    digest: str
    what: str
    """That is new with it."""


def recorded() -> list[Recorded]:
    return [Recorded(**row) for row in json.loads(FILE.read_text())]


def digest() -> str:
    """Of all messages as they are declared now: keys, fields, types and meanings. And of all that
    the metadata may hold, and of the versions in which brokers ask each other Kafka's requests."""
    said = hashlib.sha256()
    for api in PEER_APIS.values():
        for cls in (api.request, api.response):
            if cls is not None:
                said.update(f"{api.key} {cls.flexible_since}\n".encode())
                said.update("\n".join(message_tables(cls, cls.__name__)).encode())
    for line in _metadata():
        said.update(f"{line}\n".encode())
    for key in sorted(BETWEEN_BROKERS):
        said.update(f"{key} up to {APIS[key].max_version}\n".encode())
    return said.hexdigest()[:_DIGITS]


def _metadata() -> Iterator[str]:
    for cls in (*get_args(Command), *_PARTS):
        yield f"{cls.__name__} {', '.join(cls.__annotations__)}"
    for enum in _WORDS:
        yield f"{enum.__name__} {', '.join(f'{each.name}={each.value}' for each in enum)}"
    for settings in (TOPIC_SETTINGS, GROUP_SETTINGS):
        yield from sorted(settings)
