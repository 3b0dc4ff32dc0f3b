"""The declarations against Kafka's own definitions, where a copy of those is at hand.

They are read from the folder that TIDEMARK_KAFKA_MESSAGES names, else from
`../shared/kafka-messages` beside the repository, else nothing is compared.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.values import API_MESSAGES, KAFKA_APIS
from tidemark.protocol.registry import Api
from tidemark.protocol.schema.declaration import NEWEST, Message, Struct, WireField
from tidemark.protocol.schema.wire_types import Array, Nested, WireType

REPOSITORY = Path(__file__).parents[2]
DEFINITIONS = Path(
    os.environ.get("TIDEMARK_KAFKA_MESSAGES") or REPOSITORY.parent / "shared" / "kafka-messages"
)

pytestmark = pytest.mark.skipif(
    not DEFINITIONS.is_dir(), reason=f"there are no definitions of Kafka's in {DEFINITIONS}"
)

Versions = tuple[int, int]
Json = dict[str, Any]  # Any: it is JSON


@pytest.mark.parametrize("api", KAFKA_APIS, ids=lambda api: api.name)
def test_keys_and_version_ranges_are_kafkas(api: Api) -> None:
    request = definition(api.request)
    assert request["apiKey"] == api.key
    assert request["name"] == f"{api.name}Request"
    first, last = versions(request["validVersions"])
    assert first <= api.spoken_min_version <= api.max_version <= last


@pytest.mark.parametrize("cls", API_MESSAGES, ids=lambda cls: cls.__name__)
def test_flexible_versions_are_kafkas(cls: type[Message]) -> None:
    theirs = definition(cls)["flexibleVersions"]
    assert cls.flexible_since == (None if theirs == "none" else versions(theirs)[0])


@pytest.mark.parametrize("cls", API_MESSAGES, ids=lambda cls: cls.__name__)
def test_fields_are_kafkas_in_every_version(cls: type[Message]) -> None:
    theirs = definition(cls)
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
    for version in range(cls.first_version, cls.last_version + 1):
        assert list(our_layout(cls, version)) == list(
            their_layout(theirs["fields"], common, version)
        )


@pytest.mark.parametrize("cls", API_MESSAGES, ids=lambda cls: cls.__name__)
def test_defaults_are_kafkas_where_it_states_them(cls: type[Message]) -> None:
    ours = {name: field.default for name, field in our_fields(cls)}
    for name, theirs in their_fields(cls):
        if name in ours and "default" in theirs:
            assert ours[name] == default_value(theirs), name


@pytest.mark.parametrize("cls", API_MESSAGES, ids=lambda cls: cls.__name__)
def test_what_a_version_may_leave_out_is_kafkas(cls: type[Message]) -> None:
    everywhere = (cls.first_version, cls.last_version)
    ignorable = {name: bool(theirs.get("ignorable")) for name, theirs in their_fields(cls)}
    for name, field in our_fields(cls):
        if not all(map(field.exists_in, everywhere)):
            assert field.ignorable == ignorable[name], name


def our_layout(struct: type[Struct], version: int, path: str = "") -> Iterator[tuple[object, ...]]:
    """Every field that `version` has, in order, with all that decides its bytes."""
    for field in struct.wire_fields:
        if field.exists_in(version) and not field.is_own:
            name = f"{path}.{field.name}"
            yield name, type_name(field.type), field.nullable_in(version), field.tag
            inner = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(inner, Nested):
                yield from our_layout(inner.struct, version, name)


def their_layout(
    fields: list[Json], common: dict[str, list[Json]], version: int, path: str = ""
) -> Iterator[tuple[object, ...]]:
    for field in fields:
        if has_version(field["versions"], version):
            name = f"{path}.{snake_case(field['name'])}"
            nullable = has_version(field.get("nullableVersions", "none"), version)
            tag = (
                field.get("tag")
                if has_version(field.get("taggedVersions", "none"), version)
                else None
            )
            yield name, field["type"], nullable, tag
            inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), [])
            yield from their_layout(inner, common, version, name)


def our_fields(struct: type[Struct], path: str = "") -> Iterator[tuple[str, WireField]]:
    """All fields of a message and of the structs in it, by the path to them."""
    for field in struct.wire_fields:
        if field.is_own:
            continue
        name = f"{path}{field.name}"
        yield name, field
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, Nested):
            yield from our_fields(inner.struct, f"{name}.")


def their_fields(cls: type[Message]) -> Iterator[tuple[str, Json]]:
    theirs = definition(cls)
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}

    def walk(fields: list[Json], path: str) -> Iterator[tuple[str, Json]]:
        for field in fields:
            name = f"{path}{snake_case(field['name'])}"
            yield name, field
            inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), [])
            yield from walk(inner, f"{name}.")

    return walk(theirs["fields"], "")


def default_value(field: Json) -> object:
    text = str(field["default"])
    if text == "null":
        return None
    if field["type"] == "bool":
        return text == "true"
    return text if field["type"] == "string" else int(text, 0)


def type_name(wire_type: WireType[Any]) -> str:  # Any: each is looked at
    """Kafka's name for a type."""
    match wire_type:
        case Array(element=element):
            return f"[]{type_name(element)}"
        case Nested(struct=struct):
            return struct.__name__
        case _:
            return wire_type.name


def definition(cls: type[Message]) -> Json:
    """Kafka's definition of a message: JSON with comments."""
    text = (DEFINITIONS / f"{cls.__name__}.json").read_text()
    parsed: Json = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return parsed


def versions(text: str) -> Versions:
    """`3+`, `2-5` or `7`, inclusive at both ends."""
    if text.endswith("+"):
        return int(text[:-1]), NEWEST
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def has_version(text: str, version: int) -> bool:
    if text == "none":
        return False
    first, last = versions(text)
    return first <= version <= last


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
