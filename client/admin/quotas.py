"""Quotas of users and clients."""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, TypeAlias

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ClientQuotas, Default
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import alter_client_quotas as altering
from tidemark.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tidemark.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
)

Name: TypeAlias = str | Default | None
_USER: Final = "user"
_CLIENT_ID: Final = "client-id"


class QuotaAdmin(Calls):
    """The calls about quotas."""

    async def describe_quotas(self) -> list[ClientQuotas]:
        """All quotas, by whose they are."""

        async def ask(connection: Connection) -> list[ClientQuotas]:
            request = DescribeClientQuotasRequest(components=(), strict=False)
            answer = await connection.request(request, DescribeClientQuotasResponse)
            check(answer.error_code, "DescribeClientQuotas", answer.error_message)
            return [_described(entry) for entry in answer.entries or ()]

        return await self._on_any_broker(ask)

    async def alter_quotas(
        self,
        *,
        user: Name = None,
        client_id: Name = None,
        set: Mapping[str, float] | None = None,
        remove: Collection[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set and remove quotas of a user, a client id, or a client id of a user.

        `Default.DEFAULT` stands for all that have none of their own. The quotas are
        `producer_byte_rate` and `consumer_byte_rate`, in bytes a second, and `request_percentage`;
        each broker counts by itself.
        """
        named = ((_USER, user), (_CLIENT_ID, client_id))
        parts = {kind: name for kind, name in named if name is not None}
        entry = altering.EntryData(
            entity=[
                altering.EntityData(
                    entity_type=kind, entity_name=None if isinstance(name, Enum) else name
                )
                for kind, name in parts.items()
            ],
            ops=[
                *(
                    altering.OpData(key=key, value=value, remove=False)
                    for key, value in (set or {}).items()
                ),
                *(altering.OpData(key=key, value=0.0, remove=True) for key in remove),
            ],
        )
        request = altering.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)

        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, AlterClientQuotasResponse)
            for altered in answer.entries:
                check(altered.error_code, "the quota", altered.error_message)

        await self._on_controller(ask, final=(ErrorCode.INVALID_REQUEST,))


def _described(entry: EntryData) -> ClientQuotas:
    names = {
        part.entity_type: Default.DEFAULT if part.entity_name is None else part.entity_name
        for part in entry.entity
    }
    return ClientQuotas(
        user=names.get(_USER),
        client_id=names.get(_CLIENT_ID),
        values={each.key: each.value for each in entry.values},
    )
