"""Client quotas: how much clients may send, fetch and have done, and which quota holds for whom.

A quota belongs to an *entity*: a user, a client id, or a client id of a user; each by its name or
as the default for those that have none of their own. What is counted together follows from the
entity that applies: a quota of a user is shared by all that user's clients, a default is for each
by itself.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass


class QuotaKey(StrEnum):
    """What is limited, on each broker by itself."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    """Bytes of produce requests, in a second."""
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    """Bytes of records in answers to fetches, in a second."""
    REQUEST_PERCENTAGE = "request_percentage"
    """The broker's time, in percent of one processor."""


class EntityType(StrEnum):
    USER = "user"
    CLIENT_ID = "client-id"


class EntityPart(NamedTuple):
    type: EntityType
    name: str | None
    """`None`: the default."""


QuotaEntity: TypeAlias = tuple[EntityPart, ...]
"""One or two parts, the user first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """What becomes of an entity's quotas; `None` removes one, what is not named stays."""

    entity: QuotaEntity
    values: Mapping[str, float | None]


class Limit(NamedTuple):
    """One quota as it holds for a client."""

    rate: float
    shared_by: tuple[str | None, str | None]
    """The user and the client id that are counted together; `None` for whoever it is."""


ENTITIES_MAX: Final = 10_000
"""That have quotas: all brokers hold them in memory, and in every snapshot of the metadata."""
NAME_BYTES_MAX: Final = 1_000
"""Of a user or client that has a quota; what is longer may have a default one."""

_NOT_HERE: Final = {
    "controller_mutation_rate": "changes of topics are not limited here",
    "connection_creation_rate": "connections are limited by max.connections alone",
}


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity of what a client names. Raises `RequestError` INVALID_REQUEST."""
    found: dict[EntityType, str | None] = {}
    for type_name, name in parts:
        try:
            entity_type = EntityType(type_name)
        except ValueError:
            known = " and ".join(EntityType)
            raise _invalid(
                f"there are no quotas of entity type {type_name!r} here: {known} have some"
            ) from None
        if entity_type in found:
            raise _invalid(f"the {type_name} of an entity is given twice: give it once")
        if name == "":
            raise _invalid(f"a {type_name} has a name, or is the default, which is null")
        if name is not None and len(name.encode()) > NAME_BYTES_MAX:
            raise _invalid(
                f"a {type_name} with a quota has a name of {NAME_BYTES_MAX} bytes at most"
            )
        found[entity_type] = name
    if not found:
        raise _invalid("a quota needs a user or a client-id, or the default of one")
    return tuple(EntityPart(each, found[each]) for each in EntityType if each in found)


def shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{each.type} {each.name or '<default>'}" for each in entity)


class ClientQuotas:
    """The part of the cluster's state that says how much clients may do."""

    def __init__(self) -> None:
        self._values: dict[QuotaEntity, dict[str, float]] = {}
        self.revision = 0
        """How often they have changed; two states that have come apart may share one."""

    @property
    def values(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """All quotas by entity, in the order of their coming; each has at least one."""
        return self._values

    def alter(self, changes: Iterable[QuotaChange]) -> Callable[[], None]:
        """What carries the changes out. Raises `RequestError` INVALID_REQUEST for the first that
        cannot be, and then none is."""
        checked = list(changes)
        for change in checked:
            for key, value in change.values.items():
                _check(key, value)
        added = {each.entity for each in checked} - self._values.keys()
        if added and len(self._values) + len(added) > ENTITIES_MAX:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"{ENTITIES_MAX} users and clients have quotas: remove some, or use defaults",
            )

        def carry_out() -> None:
            self.revision += 1
            for change in checked:
                self._alter_one(change)

        return carry_out

    def _alter_one(self, change: QuotaChange) -> None:
        after = dict(self._values.get(change.entity, {}))
        for key, value in change.values.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        if after:
            self._values[change.entity] = after
        else:
            self._values.pop(change.entity, None)

    def limit(self, key: QuotaKey, user: str, client_id: str) -> Limit | None:
        """The quota that holds for a client: the one of the most particular entity."""
        for entity, shared_by in _entities(user, client_id):
            rate = self._values.get(entity, {}).get(key)
            if rate is not None:
                return Limit(rate, shared_by)
        return None

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> list[Any]:
        return [
            {"entity": [[part.type, part.name] for part in entity], "values": values}
            for entity, values in self._values.items()
        ]

    @classmethod
    def of(cls, body: Iterable[Any]) -> "ClientQuotas":
        quotas = cls()
        for each in body:
            entity = plain_entity(each["entity"])
            quotas._values[entity] = {key: float(value) for key, value in each["values"].items()}
        return quotas


def plain_entity(body: Iterable[Any]) -> QuotaEntity:
    """The entity that its plain form stands for."""
    return tuple(EntityPart(EntityType(type_name), name) for type_name, name in body)


def _entities(
    user: str, client_id: str
) -> Iterable[tuple[QuotaEntity, tuple[str | None, str | None]]]:
    """All that a client belongs to, the most particular first (Kafka's order)."""
    users = (EntityPart(EntityType.USER, user), EntityPart(EntityType.USER, None))
    clients = (EntityPart(EntityType.CLIENT_ID, client_id), EntityPart(EntityType.CLIENT_ID, None))
    for of_user in users:
        for of_client in clients:
            yield (of_user, of_client), (user, client_id)
        yield (of_user,), (user, None)
    for of_client in clients:
        yield (of_client,), (None, client_id)


def _check(key: str, value: float | None) -> None:
    if key not in list(QuotaKey):
        why = _NOT_HERE.get(key, f"those there are: {', '.join(QuotaKey)}")
        raise _invalid(f"there is no quota {key!r} here: {why}")
    if value is None:
        return
    if not 0 < value < math.inf:
        raise _invalid(
            f"{key} {value}: a quota is a number above 0; remove it to set no limit, and stop a "
            "client altogether where it authenticates"
        )
    if key != QuotaKey.REQUEST_PERCENTAGE and value != int(value):
        raise _invalid(f"{key} {value}: it is a whole number of bytes in a second")


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, sentence)
