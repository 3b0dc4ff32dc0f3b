"""The generated codecs say exactly what construct says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.values import A_FEW, MESSAGES, RandomValues, random_values, versions_of
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidemark.protocol.schema.construct_codec import ConstructCodec
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.straight_line import StraightLineCodec

by_name = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)


class BothCodecs:
    """One version of one message by construct and by generated source."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self._codecs = (ConstructCodec(cls, version), StraightLineCodec(cls, version))

    def encode(self, message: Message) -> bytes:
        construct, generated = (codec.encode(message) for codec in self._codecs)
        encoded = b"".join(construct)  # type: ignore[arg-type]  # all of it is in memory
        assert b"".join(generated) == encoded  # type: ignore[arg-type]  # all of it is in memory
        return encoded

    def decode(self, data: bytes) -> Message | None:
        """What both make of `data`; None is a refusal."""
        construct, generated = (_decode(codec, data) for codec in self._codecs)
        assert construct == generated
        return construct


def _decode(
    codec: ConstructCodec[Message] | StraightLineCodec[Message], data: bytes
) -> Message | None:
    try:
        return codec.decode(memoryview(data))
    except MalformedMessage:
        return None


@by_name
def test_generated_and_construct_agree_on_values_and_on_damage(cls: type[Message]) -> None:
    codecs = {version: BothCodecs(cls, version) for version in versions_of(cls)}

    @A_FEW
    @given(random_values())
    def check(values: RandomValues) -> None:
        for version, codec in codecs.items():
            message = values.struct(cls, version)
            encoded = codec.encode(message)
            assert codec.decode(encoded) == message
            for _ in range(4):
                codec.decode(damaged(encoded, values))

    check()


def damaged(data: bytes, values: RandomValues) -> bytes:
    """`data` with bytes changed, the way lengths, markers and counts go wrong, and perhaps cut."""
    random = values.random
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        if changed:
            at = random.randrange(len(changed))
            changed[at] = random.choice([0, 1, 2, 0x7F, 0x80, 0xFF, changed[at] ^ 1])
    if random.random() < 0.3:
        del changed[random.randrange(len(changed) + 1) :]
    return bytes(changed)


@given(st.binary(max_size=60))
def test_generated_and_construct_agree_on_any_bytes(data: bytes) -> None:
    for codec in ANY_BYTES:
        codec.decode(data)


ANY_BYTES = [
    BothCodecs(cls, version)
    for cls in MESSAGES
    if cls.__name__.startswith(("Fetch", "Produce", "ListOffsets"))
    for version in (cls.first_version, cls.last_version)
]


@pytest.mark.parametrize("version", versions_of(DescribeConfigsResponse))
def test_what_repeats_is_encoded_once_and_said_each_time(version: int) -> None:
    first, second = (
        DescribeConfigsResourceResult(
            name=name, value="1", read_only=False, is_sensitive=False, synonyms=()
        )
        for name in ("first", "second")
    )
    other = replace(second, value="2")
    results = [
        DescribeConfigsResult(resource_type=2, resource_name=topic, configs=configs)
        for topic, configs in (("a", (first, second)), ("b", (first, other)), ("c", (second,)))
    ]
    message = DescribeConfigsResponse(results=results)
    BothCodecs(DescribeConfigsResponse, version).encode(message)
    chunks = StraightLineCodec(DescribeConfigsResponse, version).encode(message)
    of_first = [chunk for chunk in chunks if isinstance(chunk, bytes) and b"first" in chunk]
    assert len(of_first) == 2
    assert of_first[0] == b"first" != of_first[1], "the second time it is one piece"
