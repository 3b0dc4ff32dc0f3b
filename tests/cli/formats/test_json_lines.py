"""Records as lines of JSON, there and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.formats.examples import FULL, NULLS, ORDERS
from tidemark.cli.formats.json_lines import InputError, NewRecord, format_json, parse_json
from tidemark.protocol.records.records import Record
from tidemark.protocol.types import Offset

nullable_bytes = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
records = st.builds(
    Record,
    offset=st.integers(0, 2**62).map(Offset),
    timestamp_ms=st.integers(-(2**62), 2**62),
    key=nullable_bytes,
    value=nullable_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), nullable_bytes), max_size=3).map(tuple),
)


def test_a_record_is_one_line_with_its_place_first() -> None:
    assert format_json(FULL, ORDERS) == (
        b'{"topic":"orders","partition":3,"offset":343,"timestamp":1700000000123,'
        b'"key":"key","value":"value",'
        b'"headers":[{"key":"H1","value":"V1"},{"key":"h2","value":null}]}\n'
    )


def test_nulls_are_null_and_no_headers_are_left_out() -> None:
    assert format_json(NULLS, ORDERS) == (
        b'{"topic":"orders","partition":3,"offset":344,"timestamp":-1,"key":null,"value":null}\n'
    )


def test_bytes_that_are_not_text_have_a_name_that_says_so() -> None:
    line = json.loads(format_json(FULL._replace(value=b"\xff"), ORDERS))
    assert line["value_base64"] == "/w=="
    assert "value" not in line


@given(record=records)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    line = format_json(record, ORDERS)
    assert line.count(b"\n") == 1
    assert parse_json(line) == NewRecord(
        value=record.value,
        key=record.key,
        headers=list(record.headers),
        partition=ORDERS.partition,
        timestamp_ms=record.timestamp_ms,
    )


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b"{}", NewRecord(value=None, headers=[])),
        (b'{"value":"v"}', NewRecord(value=b"v", headers=[])),
        (b'{"value":{"a":[1,null]},"key":7}',
         NewRecord(value=b'{"a": [1, null]}', key=b"7", headers=[])),
        (b'{"headers":{"a":"1","b":null},"partition":2}',
         NewRecord(value=None, headers=[("a", b"1"), ("b", None)], partition=2)),
    ],
)  # fmt: skip
def test_what_is_left_out_is_left_to_the_producer(line: bytes, record: NewRecord) -> None:
    assert parse_json(line) == record


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"hello", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["a"]', "not a JSON object"),
        (b'{"partition":"2"}', "partition is not a whole number"),
        (b'{"partition":-1}', "partition is not a whole number"),
        (b'{"partition":4294967296}', "partition is not a whole number"),
        (b'{"timestamp":true}', "timestamp is not a whole number"),
        (b'{"timestamp":4611686018427387905}', "timestamp is not a whole number"),
        (b'{"timestamp":-4611686018427387905}', "timestamp is not a whole number"),
        (b'{"value_base64":"?"}', "value_base64 is not base64"),
        (b'{"key_base64":1234}', "key_base64 is not a string"),
        (b'{"value":"v","value_base64":"dg=="}', "value and value_base64 exclude each other"),
        (b'{"headers":[{"key":"a","value":"1","value_base64":"MQ=="}]}', "exclude each other"),
        (b'{"value":"\\ud800"}', "half a surrogate pair"),
        (b'{"headers":[1]}', "headers are neither"),
        (b'{"headers":"a=1"}', "headers are neither"),
        (b'{"headers":[{"key":"a","vaule":"1"}]}', 'no "vaule" in a header'),
        (b'{"headers":{"a\\ud800":"1"}}', "a header's name is text"),
        (b'{"headers":[{"key":"a\\ud800"}]}', "a header's name is text"),
        (b'{"valeu":"v"}', 'no "valeu" in a record: did you mean value?'),
        (b'{"id":7,"value":"v"}', 'no "id" in a record: it takes value, value_base64, key'),
    ],
)
def test_what_is_not_a_record_is_refused_with_the_reason(line: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        parse_json(line)
