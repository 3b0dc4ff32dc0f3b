"""AlterClientQuotas: quotas of users and clients are set and removed."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
    FLOAT64,
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
class OpData(Struct):
    """What is to become of one quota."""

    key: str = wire(
        STRING, "What is limited: producer_byte_rate, consumer_byte_rate or request_percentage."
    )
    value: float = wire(FLOAT64, "The limit, unless it is removed.")
    remove: bool = wire(BOOL, "Whether there is to be none.")


@struct
class EntryData(Struct):
    """The changes of one entity's quotas."""

    entity: Sequence[EntityData] = wire(array(EntityData), "Whose quotas they are.")
    ops: Sequence[OpData] = wire(array(OpData), "The changes.")


@message(versions=(0, 1), flexible_since=1, straight_line=True)
class AlterClientQuotasRequest(Message):
    """Changes quotas, those of each entity by itself."""

    entries: Sequence[EntryData] = wire(array(EntryData), "The changes, by entity.")
    validate_only: bool = wire(BOOL, "Whether to say what would happen, and change nothing.")
