"""Keys and values of `__consumer_offsets`, byte for byte as Kafka's own tools read them."""

import pytest
from hypothesis import given

from tests.protocol.values import A_FEW, STORED_MESSAGES, RandomValues, random_values, versions_of
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
)
from tidemark.protocol.messages.stored import decode_value, encode_record

COMMIT_KEY = OffsetCommitKey(group="g", topic="t", partition=5)
COMMIT = OffsetCommitValue(offset=42, metadata="", commit_timestamp=1_700_000_000_000)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=3,
    protocol="range",
    leader="m",
    current_state_timestamp=9,
    members=(
        MemberMetadata(
            member_id="m",
            group_instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout=60,
            session_timeout=10,
            subscription=b"s",
            assignment=b"a",
        ),
    ),
)


def test_a_commit_is_kept_as_the_module_shows_it() -> None:
    assert encode_record(COMMIT_KEY, 1) == bytes.fromhex("0001 000167 000174 00000005")
    assert encode_record(COMMIT, 3) == bytes.fromhex(
        "0003 000000000000002a ffffffff 0000 0000018bcfe56800"
    )


def test_a_group_is_kept_in_version_3() -> None:
    assert encode_record(GROUP, 3) == bytes.fromhex(
        "0003"
        "0008 636f6e73756d6572"  # consumer
        "00000003"
        "0005 72616e6765"  # range
        "0001 6d"
        "0000000000000009"
        "00000001"
        "0001 6d  0001 69  0001 63  0002 2f68"
        "0000003c 0000000a"
        "00000001 73  00000001 61"
    )


def test_the_version_of_a_key_says_what_it_is_the_key_of() -> None:
    group_key = GroupMetadataKey(group="g")
    assert decode_key(encode_record(COMMIT_KEY, 0)) == COMMIT_KEY
    assert decode_key(encode_record(COMMIT_KEY, 1)) == COMMIT_KEY
    assert decode_key(encode_record(group_key, 2)) == group_key


def test_keys_of_kinds_to_come_are_none() -> None:
    assert decode_key(b"\x00\x0bwhatever") is None


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x01", b"\x00\x02\x00\x05g"])
def test_a_key_that_does_not_parse_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_key(data)


def test_a_value_of_a_version_to_come_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decode_value(OffsetCommitValue, b"\x00\x05" + bytes(100))


@A_FEW
@given(random_values())
def test_values_go_round_in_every_version(values: RandomValues) -> None:
    for cls in STORED_MESSAGES:
        for version in versions_of(cls):
            value = values.struct(cls, version)
            assert decode_value(cls, encode_record(value, version)) == value
