"""Which operations there are on which resources, and which of them a command line means."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import product
from typing import Final, TypeAlias

import click

from tidemark.protocol.acls import OPERATIONS, Operation, ResourceType
from tidemark.protocol.values import dataclass

CHOICES: Final[Mapping[ResourceType, Sequence[Operation]]] = {
    resource_type: (*operations, Operation.ALL) for resource_type, operations in OPERATIONS.items()
}
"""What an ACL can say of a resource of each type."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What an option names: one resource, or those whose names begin so."""

    type: ResourceType
    name: str


Chosen: TypeAlias = tuple[Resource, Operation]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preset:
    """What one of the usual clients needs."""

    flag: str
    operations: Mapping[ResourceType, Sequence[Operation]]
    required: Sequence[ResourceType]


_PRODUCER: Final = _Preset(
    flag="--producer",
    operations={
        ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    },
    required=(ResourceType.TOPIC,),
)
_CONSUMER: Final = _Preset(
    flag="--consumer",
    operations={
        ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
        ResourceType.GROUP: (Operation.READ,),
    },
    required=(ResourceType.TOPIC, ResourceType.GROUP),
)


def word(number: IntEnum) -> str:
    """How the command line writes it: `describe-configs`."""
    return number.name.lower().replace("_", "-")


def noun(resource_type: ResourceType) -> str:
    """What people call one."""
    return word(resource_type).replace("-", " ")


def chosen_by_presets(
    resources: Sequence[Resource],
    operations: Sequence[Operation],
    *,
    producer: bool,
    consumer: bool,
) -> list[Chosen] | None:
    """What `--producer` and `--consumer` stand for; None if neither is given."""
    presets = [preset for preset, on in ((_PRODUCER, producer), (_CONSUMER, consumer)) if on]
    if not presets:
        return None
    flags = " or ".join(preset.flag for preset in presets)
    if operations:
        raise click.UsageError(f"give either {flags} or --operation")
    for preset in presets:
        for needed in preset.required:
            if all(each.type is not needed for each in resources):
                raise click.UsageError(f"{preset.flag} needs a {noun(needed)}: give one, or '*'")
    chosen: dict[Chosen, None] = {}
    for each in resources:
        if all(each.type not in preset.operations for preset in presets):
            raise click.UsageError(f"a {noun(each.type)} has no {flags}: leave it out")
        for preset in presets:
            known = preset.operations.get(each.type, ())
            chosen.update(dict.fromkeys((each, operation) for operation in known))
    return list(chosen)


def chosen_each(resources: Sequence[Resource], operations: Sequence[Operation]) -> list[Chosen]:
    """Each operation on each resource. Raises `UsageError` for one that its type does not know."""
    for resource, operation in product(resources, operations):
        known = CHOICES[resource.type]
        if operation not in known:
            raise click.UsageError(
                f"a {noun(resource.type)} has no operation {word(operation)}: it has "
                f"{', '.join(map(word, known))}"
            )
    return list(product(resources, operations))
