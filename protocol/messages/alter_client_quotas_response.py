"""The response of AlterClientQuotas; its structs are called as the request's are."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
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
class EntityData(Struct):
    """A part of an entity."""

    entity_type: str = wire(STRING, "The entity type: user or client-id.")
    entity_name: str | None = wire(STRING, "Its name; null is the default.", null_since=0)


@struct
class EntryData(Struct):
    """What came of the changes of one entity's quotas."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    entity: Sequence[EntityData] = wire(array(EntityData), "Whose quotas they are.")


@message(versions=(0, 1), flexible_since=1)
class AlterClientQuotasResponse(Message):
    """What came of the changes."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    entries: Sequence[EntryData] = wire(array(EntryData), "By entity.")
