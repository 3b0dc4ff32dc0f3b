"""Every API and version against kio, whose codecs are generated from Kafka's own definitions."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.protocol.values import A_FEW, KAFKA_APIS, RandomValues, plausible_values, versions_of
from tidemark.protocol import codec
from tidemark.protocol.registry import Api
from tidemark.protocol.schema.declaration import Message, Struct

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

by_api = pytest.mark.parametrize("api", KAFKA_APIS, ids=lambda api: api.name)


@by_api
def test_kio_reads_our_requests_and_we_read_its(api: Api) -> None:
    check_messages(
        api.request, {v: load_request_schema(api.key, v) for v in versions_of(api.request)}
    )


@by_api
def test_kio_reads_our_responses_and_we_read_its(api: Api) -> None:
    check_messages(
        api.response, {v: load_response_schema(api.key, v) for v in versions_of(api.response)}
    )


def check_messages(cls: type[Message], schemas: dict[int, Any]) -> None:  # Any: kio's classes
    @A_FEW
    @given(plausible_values())
    def check(values: RandomValues) -> None:
        for version, schema in schemas.items():
            message = values.struct(cls, version)
            ours = codec.encode(message, version)
            read, write = kio_codec(schema)

            theirs, size = read(ours, 0)
            assert size == len(ours)
            assert plain_of_kio(theirs) == plain(message, version)

            buffer = io.BytesIO()
            write(buffer, theirs)
            assert codec.decode(cls, version, buffer.getvalue()) == message

    check()


@cache
def kio_codec(schema: type[Any]) -> tuple[Any, Any]:  # Any: kio's classes and functions
    return entity_reader(schema), entity_writer(schema)


def plain(value: object, version: int) -> object:
    """A message of ours as nested lists, in the order of its fields."""
    match value:
        case Struct():
            return [
                plain(getattr(value, field.name), version)
                for field in value.wire_fields
                if field.exists_in(version) and not field.is_own
            ]
        case tuple():
            return [plain(element, version) for element in value]
        case memoryview():
            return bytes(value)
        case _:
            return value


def plain_of_kio(value: Any, kafka_type: str | None = None) -> object:  # Any: kio's entities
    """A message of kio's in the same form; it has types of its own for times, codes and ids."""
    match value:
        case None if kafka_type == "datetime_i64":
            return -1
        case None if kafka_type == "uuid":
            return UUID(int=0)
        case tuple():
            return [plain_of_kio(element, kafka_type) for element in value]
        case timedelta():
            return value // MILLISECOND
        case datetime():
            return (value - EPOCH) // MILLISECOND
        case _ if dataclasses.is_dataclass(value):
            return [
                plain_of_kio(getattr(value, field.name), field.metadata.get("kafka_type"))
                for field in dataclasses.fields(value)
            ]
        case _:
            return value
