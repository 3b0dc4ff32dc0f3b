"""What an administrator does with ACLs and topics, in tests about what others then may do."""

from __future__ import annotations

from tests.clients.guests import Login
from tidemark.client import Acl, AclFilter, Operation, PatternType, ResourceType
from tidemark.client.blocking import BlockingClient

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


class Acls:
    """Made with a client of somebody who may."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def create_topic(self, name: str) -> None:
        self._client.run(self._client.admin.create_topic, name, partitions=1)

    def topics(self) -> list[str]:
        return [each.name for each in self._client.run(self._client.admin.list_topics)]

    def allow(
        self,
        login: Login,
        resource_type: ResourceType,
        name: str,
        *operations: Operation,
        pattern: PatternType = PatternType.LITERAL,
    ) -> None:
        acls = [
            Acl(
                principal=f"User:{login.user}",
                operation=operation,
                resource_type=resource_type,
                name=name,
                pattern=pattern,
            )
            for operation in operations
        ]
        self._client.run(self._client.admin.create_acls, acls)

    def remove(self, login: Login, resource_type: ResourceType | None = None) -> None:
        """All ACLs of a user that are about such resources."""
        of_them = AclFilter(principal=f"User:{login.user}", resource_type=resource_type)
        assert self._client.run(self._client.admin.delete_acls, of_them)

    def clear(self) -> None:
        self._client.run(self._client.admin.delete_acls, AclFilter())
