"""A node with an authorizer, and asking it as a user."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.broker.access.asked import Need, name_of
from tests.broker.nodes import context, open_node
from tidemark.broker.access.gated import GatedHandlers
from tidemark.broker.config.authorizers import STANDARD
from tidemark.broker.handlers import HANDLERS
from tidemark.broker.handlers.between_brokers import settled
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import Session
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.cluster_commands import AlterAcls
from tidemark.protocol.acls import PatternType, Permission, ResourceType
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.messages.fetch import FetchResponse
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message

HOST = "127.0.0.1"


@dataclass
class Guarded:
    """A broker behind its gates."""

    node: Node
    handlers: GatedHandlers
    sessions: dict[str, Session]

    async def ask(self, user: str, request: Message, version: int) -> Any:
        """The answer, which has been through the wire. Raises what the whole is refused with."""
        # The broker places batches where they lie, so the buffer is one that can be written.
        frame = memoryview(bytearray(encode(request, version)))
        asked = decode(type(request), version, frame)
        session = self.sessions.setdefault(user, context(version).session)
        session.user = user
        handle = self.handlers[api_of(type(request)).key]
        answer = await settled(handle(self.node, asked, context(version)._replace(session=session)))
        if isinstance(answer, FetchResponse):
            return answer  # Its records are slices of a log.
        return decode(type(answer), version, encode(answer, version))

    async def allow(self, user: str, needs: Iterable[Need], name: str) -> list[Acl]:
        """By literal ACLs about things of this name, and none else."""
        acls = [
            Acl(
                resource_type,
                PatternType.LITERAL,
                name_of(resource_type, name),
                f"User:{user}",
                "*",
                operation,
                Permission.ALLOW,
            )
            for operation, resource_type in needs
        ]
        await self.alter(added=acls)
        return acls

    async def alter(self, *, added: Iterable[Acl] = (), removed: Iterable[Acl] = ()) -> None:
        await self.node.cluster.propose(
            lambda state: AlterAcls(
                at_version=state.version, added=tuple(added), removed=tuple(removed)
            )
        )

    async def create(self, *topics: str) -> None:
        for name in topics:
            await self.node.topics.ensure(NewTopic(name=name))


@asynccontextmanager
async def guarded(tmp_path: Path, **settings: Any) -> AsyncIterator[Guarded]:  # Any: any setting
    given = {
        "authorizer_class_name": STANDARD,
        "super_users": ("User:admin",),
        "offsets_topic_num_partitions": 1,
        "transaction_state_log_num_partitions": 1,
        **settings,
    }
    async with open_node(tmp_path, **given) as node:
        await node.coordinator.ensure_topic()
        await node.transactions.ensure_topic()
        yield Guarded(node, GatedHandlers(HANDLERS, node), {})


def allowed(operation: Any, resource_type: ResourceType, name: str, *, user: str = "alice") -> Acl:
    return Acl(
        resource_type,
        PatternType.LITERAL,
        name,
        f"User:{user}",
        "*",
        operation,
        Permission.ALLOW,
    )


@pytest.fixture
async def guard(tmp_path: Path) -> AsyncIterator[Guarded]:
    async with guarded(tmp_path) as made:
        yield made
