"""Nothing is made of a length before it is held against what is left."""

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.values import MESSAGES, every_version
from tidemark.protocol import codec
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.protocol.messages.delete_groups import DeleteGroupsRequest
from tidemark.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidemark.protocol.messages.offset_fetch import OffsetFetchRequest
from tidemark.protocol.messages.produce import ProduceRequest
from tidemark.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidemark.protocol.primitives import STRING_BYTES_MAX, encode_uvarint
from tidemark.protocol.schema.declaration import Message

MAX_VARINT = "ffffffff0f"

CLAIMS: dict[str, tuple[type[Message], int, str]] = {
    "a classic array of strings": (DeleteGroupsRequest, 1, "7fffffff"),
    "a compact array of strings": (DeleteGroupsRequest, 2, MAX_VARINT),
    "a classic array of structs": (MetadataRequest, 1, "7fffffff"),
    "a compact array of structs": (MetadataRequest, 9, MAX_VARINT),
    "a compact array of structs with generated code": (
        FetchRequest,
        12,
        "ffffffff 00000000 00000000 7fffffff 00 00000000 ffffffff" + MAX_VARINT,
    ),
    "a classic string": (DeleteGroupsRequest, 0, "00000001 7fff"),
    "a compact string": (ApiVersionsRequest, 3, MAX_VARINT),
    "classic bytes": (SaslAuthenticateRequest, 0, "7fffffff"),
    "compact bytes": (SaslAuthenticateRequest, 2, MAX_VARINT),
    "classic records": (
        ProduceRequest,
        3,
        "ffff ffff 00000000 00000001 0001 74 00000001 00000000 7fffffff",
    ),
    "the number of tagged fields": (SaslAuthenticateRequest, 2, "01" + MAX_VARINT),
    "the number of tagged fields with generated code": (
        ProduceRequest,
        9,
        "00 ffff 00000000 01" + MAX_VARINT,
    ),
    "the size of a tagged field": (SaslAuthenticateRequest, 2, "01 01 00" + MAX_VARINT),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_length_beyond_the_message_is_refused_before_anything_is_allocated(claim: str) -> None:
    cls, version, start = CLAIMS[claim]
    data = bytes.fromhex(start) + bytes(16)
    codec.codec_of(cls, version)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            codec.decode(cls, version, data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 50_000


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_message_may_end_anywhere(claim: str) -> None:
    cls, version, start = CLAIMS[claim]
    data = bytes.fromhex(start)
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            codec.decode(cls, version, data[:size])


@pytest.mark.parametrize("varint", ["8080808080", "ffffffffff", "ffffffff1f", "ffffffff7f"])
def test_a_varint_beyond_32_bits_is_refused(varint: str) -> None:
    for cls, version in ((DeleteGroupsRequest, 2), (ProduceRequest, 9)):
        with pytest.raises(MalformedMessage):
            codec.decode(cls, version, bytes.fromhex(varint) + bytes(32))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    for cls in MESSAGES:
        with suppress(MalformedMessage):
            codec.decode(cls, cls.last_version, data)


def test_zeros_are_a_message_or_malformed_in_every_version() -> None:
    for cls, version in every_version():
        for size in (0, 1, 7, 200):
            with suppress(MalformedMessage):
                codec.decode(cls, version, bytes(size))


@pytest.mark.parametrize("version", [-1, 2, 13, 99])
def test_a_version_that_is_not_declared_is_refused(version: int) -> None:
    with pytest.raises(MalformedMessage):
        codec.decode(ProduceRequest, version, bytes(100))


@pytest.mark.parametrize(
    "data", [bytes.fromhex("00000001 0001 ff"), bytes.fromhex("00000001 0002 c328")]
)
def test_a_string_that_is_not_utf_8_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        codec.decode(DeleteGroupsRequest, 0, data)


@pytest.mark.parametrize("cls", [FetchRequest, DeleteGroupsRequest])
def test_what_does_not_fit_its_type_is_malformed_when_encoding(cls: type[Message]) -> None:
    too_much = {
        FetchRequest: FetchRequest(max_wait_ms=2**31, min_bytes=0, topics=()),
        DeleteGroupsRequest: DeleteGroupsRequest(groups_names=["x" * 2**15]),
    }
    version = cls.first_version
    with pytest.raises(MalformedMessage):
        codec.encode(too_much[cls], version)


def test_records_are_views_and_everything_else_is_copied() -> None:
    data = bytearray.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000 00000002 0102")
    view = memoryview(data)
    request = codec.decode(ProduceRequest, 3, view)
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    data[-1] = 9
    data[12 + 4 - 2] = ord("u")
    assert partition.records == b"\x01\x09"
    assert topic.name == "t"


def elements_of(cls: type[Message], version: int) -> tuple[bytes, int]:
    """A message with 40 elements at two depths and in a tagged section, and that number."""
    made: dict[type[Message], Message] = {
        FetchRequest: FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                FetchTopic(
                    topic="t",
                    partitions=[
                        FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=1)
                        for at in range(39)
                    ],
                )
            ],
        ),
        MetadataRequest: MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 40),
        DeleteGroupsRequest: DeleteGroupsRequest(groups_names=["g"] * 40),
    }
    data = codec.encode(made[cls], version)
    if version < (cls.flexible_since or 99):
        return data, 40
    assert data.endswith(b"\0")
    return data[:-1] + b"\x02\x63\x00\x64\x00", 42


@pytest.mark.parametrize(
    ("cls", "version"),
    [
        (FetchRequest, 4),
        (FetchRequest, 12),
        (MetadataRequest, 1),
        (MetadataRequest, 9),
        (DeleteGroupsRequest, 2),
    ],
)
def test_elements_are_counted_over_the_whole_message(cls: type[Message], version: int) -> None:
    data, count = elements_of(cls, version)
    codec.decode(cls, version, data, elements_max=count)
    with pytest.raises(MalformedMessage, match="more elements in all"):
        codec.decode(cls, version, data, elements_max=count - 1)


@pytest.mark.parametrize(
    ("cls", "version"), [(DeleteGroupsRequest, 2), (OffsetFetchRequest, 7), (FetchRequest, 12)]
)
def test_no_version_takes_or_makes_a_string_that_an_older_one_could_not_name(
    cls: type[Message], version: int
) -> None:
    """With construct's codecs and generated ones: the first two, and the third."""

    def named(size: int) -> Message:
        name = "x" * size
        if cls is DeleteGroupsRequest:
            return DeleteGroupsRequest(groups_names=(name,))
        if cls is OffsetFetchRequest:
            return OffsetFetchRequest(group_id=name, topics=None)
        return FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), rack_id=name)

    longest = codec.encode(named(STRING_BYTES_MAX), version)
    assert codec.decode(cls, version, longest) == named(STRING_BYTES_MAX)
    with pytest.raises(MalformedMessage, match="a string of 32768 bytes, 32767 are the most"):
        codec.encode(named(STRING_BYTES_MAX + 1), version)
    content = b"x" * STRING_BYTES_MAX
    length = encode_uvarint(STRING_BYTES_MAX + 1)
    longer = encode_uvarint(STRING_BYTES_MAX + 2)
    assert length + content in longest
    too_long = longest.replace(length + content, longer + content + b"x")
    with pytest.raises(MalformedMessage, match="a string of 32768 bytes, 32767 are the most"):
        codec.decode(cls, version, too_long)
