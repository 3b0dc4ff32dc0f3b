"""What may be given for a record: all that a batch can hold, and nothing that would spoil it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.record_arguments import (
    TIMESTAMP_MAX_MS,
    as_bytes,
    as_headers,
    as_timestamp,
)
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import Offset

TIMESTAMPS = st.integers(-TIMESTAMP_MAX_MS, TIMESTAMP_MAX_MS)


@given(st.lists(TIMESTAMPS, min_size=1, max_size=5))
def test_any_timestamps_that_are_taken_can_be_read_again(timestamps: list[int]) -> None:
    records = [Record(Offset(0), as_timestamp(each), None, b"x", ()) for each in timestamps]
    assert [each.timestamp_ms for each in decode_records(encode_batch(records))] == timestamps


@pytest.mark.parametrize("timestamp_ms", [TIMESTAMP_MAX_MS + 1, -TIMESTAMP_MAX_MS - 1, 2**63])
def test_a_timestamp_beyond_them_is_refused(timestamp_ms: int) -> None:
    with pytest.raises(ValueError, match="timestamp is within"):
        as_timestamp(timestamp_ms)


@pytest.mark.parametrize("timestamp_ms", [1.5, "1"])
def test_a_timestamp_is_a_whole_number(timestamp_ms: object) -> None:
    with pytest.raises(TypeError, match="whole number of ms, not"):
        as_timestamp(timestamp_ms)  # type: ignore[arg-type]  # on purpose


def test_a_view_is_taken_by_its_bytes_whatever_its_elements_are() -> None:
    eight = bytes(range(8))
    assert as_bytes("value", memoryview(eight).cast("I")) == eight
    assert as_bytes("value", memoryview(eight)[::2]) == eight[::2]


def test_what_may_change_is_taken_as_it_is_now() -> None:
    changing = bytearray(b"now")
    taken = as_bytes("key", changing)
    changing[:] = b"then"
    assert taken == b"now"
    ((_, header),) = as_headers({"h": changing})  # type: ignore[dict-item]  # not bytes
    changing[:] = b""
    assert header == b"then"


def test_a_header_s_name_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match=r"UTF-8, which .* is not"):
        as_headers({"\ud800": b"x"})
