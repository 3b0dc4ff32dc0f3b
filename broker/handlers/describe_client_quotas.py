"""DescribeClientQuotas: the quotas of the entities that match, as this broker knows them."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.client_quotas import EntityType, QuotaEntity
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_IP: Final = "ip"
"""Kafka's third type of entity. Connections are not limited here, so no address has a quota."""


class _Match(IntEnum):
    """Kafka's numbers of how a component matches."""

    NAME = 0
    DEFAULT = 1
    ANY = 2


def handle(
    node: Node, request: DescribeClientQuotasRequest, _context: RequestContext
) -> DescribeClientQuotasResponse:
    if any(each.entity_type == _IP for each in request.components):
        return DescribeClientQuotasResponse(entries=[])
    try:
        components = _components(request)
    except RequestError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(
        entries=[
            _entry(entity, values)
            for entity, values in node.cluster.state.quotas.values.items()
            if _matches(entity, components, strict=request.strict)
        ]
    )


def _components(request: DescribeClientQuotasRequest) -> dict[EntityType, ComponentData]:
    """By entity type. Raises `RequestError` for one that nothing can match."""
    components: dict[EntityType, ComponentData] = {}
    for each in request.components:
        try:
            entity_type, match = EntityType(each.entity_type), _Match(each.match_type)
        except ValueError:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"no quotas match entity type {each.entity_type!r} in way {each.match_type}: the "
                f"types are {' and '.join(EntityType)}, the ways 0 to 2",
            ) from None
        if entity_type in components:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{entity_type} is asked about twice")
        if (match is _Match.NAME) != (each.match is not None):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "a name is given to match that name, and only then"
            )
        components[entity_type] = each
    return components


def _matches(
    entity: QuotaEntity, components: Mapping[EntityType, ComponentData], *, strict: bool
) -> bool:
    names = dict(entity)
    if strict and names.keys() != components.keys():
        return False
    return all(
        entity_type in names and _is_matched(names[entity_type], component)
        for entity_type, component in components.items()
    )


def _is_matched(name: str | None, component: ComponentData) -> bool:
    match component.match_type:
        case _Match.NAME:
            return name == component.match
        case _Match.DEFAULT:
            return name is None
    return True


def _entry(entity: QuotaEntity, values: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=part.type, entity_name=part.name) for part in entity],
        values=[ValueData(key=key, value=value) for key, value in values.items()],
    )
