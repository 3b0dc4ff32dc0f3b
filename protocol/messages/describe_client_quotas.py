"""DescribeClientQuotas: the quotas of users and clients."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class ComponentData(Struct):
    """Which names of one entity type are asked about."""

    entity_type: str = wire(STRING, "The entity type: user or client-id.")
    match_type: int = wire(INT8, "0 is that name, 1 the default, 2 any name or the default.")
    match: str | None = wire(STRING, "The name, where one is asked for.", null_since=0)


@message(versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest(Message):
    """Asks for the quotas of the entities that match all components."""

    components: Sequence[ComponentData] = wire(
        array(ComponentData), "What the entities have; none asks for all of them."
    )
    strict: bool = wire(BOOL, "Whether entities with parts that no component names are left out.")


@struct
class EntityData(Struct):
    """A part of an entity."""

    entity_type: str = wire(STRING, "The entity type: user or client-id.")
    entity_name: str | None = wire(STRING, "Its name; null is the default.", null_since=0)


@struct
class ValueData(Struct):
    """A quota."""

    key: str = wire(STRING, "What is limited.")
    value: float = wire(FLOAT64, "The limit.")


@struct
class EntryData(Struct):
    """The quotas of one entity."""

    entity: Sequence[EntityData] = wire(array(EntityData), "Whose quotas they are.")
    values: Sequence[ValueData] = wire(array(ValueData), "The quotas.")


@message(versions=(0, 1), flexible_since=1)
class DescribeClientQuotasResponse(Message):
    """The quotas that were asked for."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    entries: Sequence[EntryData] | None = wire(
        array(EntryData), "The quotas, by entity; null if something went wrong.", null_since=0
    )
