"""Columns are records: what the vectorised path makes of bytes, the plain one makes of them."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import cycle
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.records.strategies import CODECS, RECORDS, records_of
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.columns import SCHEMA, decode_columns, encode_columns
from tidemark.protocol.records.columns.grids import Grids
from tidemark.protocol.records.columns.guess import guess_starts
from tidemark.protocol.records.columns.sections import join_sections
from tidemark.protocol.records.columns.varints import Unusual, VarintReader
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    build_batch,
    iter_headers,
    place,
    place_log_append_time,
    read_header,
    seal,
)
from tidemark.protocol.records.records import (
    Record,
    decode_batch,
    decode_records,
    encode_batch,
)
from tidemark.protocol.records.varints import varint
from tidemark.protocol.types import Epoch, Offset

BATCHES = st.lists(st.tuples(RECORDS, CODECS), min_size=1, max_size=3)
SAMPLE = [
    Record(value=b"v" * (i % 7), key=None if i % 3 else b"k", timestamp_ms=1_700_000_000_000 + i)
    for i in range(100)
]


def log_of(batches: Sequence[tuple[list[Record], Compression]]) -> bytes:
    log, offset = b"", Offset(7)
    for records, codec in batches:
        log += encode_batch(records, base_offset=offset, compression=codec)
        offset = Offset(offset + len(records) + 3)  # compaction leaves gaps like these
    return log


def columns_of(records: Sequence[Record]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([r.offset for r in records], pa.int64()),
            pa.array([r.timestamp_ms for r in records], pa.timestamp("ms", tz="UTC")),
            pa.array([0] * len(records), pa.int32()),
            pa.array([r.key for r in records], pa.binary()),
            pa.array([r.value for r in records], pa.binary()),
            pa.array(
                [[{"key": k, "value": v} for k, v in r.headers] for r in records],
                SCHEMA.field("headers").type,
            ),
        ],
        schema=SCHEMA,
    )


@given(batches=BATCHES)
def test_columns_are_the_records(batches: list[tuple[list[Record], Compression]]) -> None:
    log = log_of(batches)
    columns = decode_columns(log)
    columns.validate(full=True)
    assert columns.equals(columns_of(decode_records(log)))
    assert decode_columns(log, memory=Buffers()).equals(columns)


@given(
    size=st.sampled_from([0, 1, 50, 60, 100, 8180, 9000]),
    counts=st.lists(st.sampled_from([1, 15, 16, 70, 300]), min_size=1, max_size=3),
    step_ms=st.sampled_from([0, 1, 100, 100_000]),
    key=st.sampled_from([None, b"", b"key"]),
)
def test_runs_of_records_of_one_length_are_the_records(
    size: int, counts: list[int], step_ms: int, key: bytes | None
) -> None:
    log = log_of(
        [
            (
                [
                    Record(value=bytes([i % 251]) * size, key=key, timestamp_ms=i * step_ms)
                    for i in range(count)
                ],
                Compression.NONE,
            )
            for count in counts
        ]
    )
    columns = columns_of(decode_records(log))
    assert decode_columns(log).equals(columns)
    memory = Buffers()
    first = decode_columns(log, memory=memory)
    assert first.equals(columns)
    part = columns.slice(len(columns) // 3, len(columns) // 2)
    if len(part):
        start, last = part["offset"][0].as_py(), part["offset"][-1].as_py()
        assert decode_columns(log, start=start, end=last + 1, memory=memory).equals(part)
    assert first.equals(columns), "it was written over"


def test_values_of_one_length_are_copied_to_where_earlier_ones_were() -> None:
    memory = Buffers()
    logs = [
        log_of([([Record(value=bytes([first + i]) * 90) for i in range(100)], Compression.NONE)])
        for first in (0, 50, 100)
    ]
    one = decode_columns(logs[0], memory=memory)
    two = decode_columns(logs[1], memory=memory)
    was = one["value"].buffers()[2].address
    assert two["value"].buffers()[2].address != was
    del one
    three = decode_columns(logs[2], memory=memory)
    assert three["value"].buffers()[2].address == was
    for columns, log in zip((two, three), logs[1:], strict=True):
        assert columns.equals(columns_of(decode_records(log)))


@pytest.mark.parametrize("key", [None, b"", b"a key"])
@pytest.mark.parametrize("step_ms", [0, 1, 100])
def test_records_of_one_length_are_read_where_they_lie(key: bytes | None, step_ms: int) -> None:
    """Nothing about them is `Uneven`, though offsets take up to three bytes."""
    batches = [
        (
            [Record(value=bytes([i % 251] * 40), key=key, timestamp_ms=i * step_ms) for i in of],
            Compression.NONE,
        )
        for of in [range(8200), range(70), range(70), range(70)]
    ]
    log = log_of(batches)
    joined, sections = join_sections(log, list(iter_headers(log)), bytes_max=1 << 20)
    grids = Grids(VarintReader(np.frombuffer(joined, np.uint8)), sections)
    deltas = [i for records, _ in batches for i in range(len(records))]
    assert grids.varints().tolist() == [delta * step_ms for delta in deltas]
    assert grids.varints().tolist() == deltas
    assert set(grids.slices().lengths.tolist()) == {-1 if key is None else len(key)}
    values = grids.slices()
    assert [joined[at] for at in values.starts.tolist()] == [delta % 251 for delta in deltas]
    assert not grids.headers().counts.any()
    assert decode_columns(log).equals(columns_of(decode_records(log)))


@given(
    parts=st.lists(st.integers(0, 70), min_size=16, max_size=40),
    times=st.lists(st.sampled_from([0, 1, 64, 8192, 1 << 21]), min_size=1, max_size=4),
    headers=st.sampled_from([(), (("h", b"v"),)]),
    start=st.integers(0, 50),
)
def test_records_of_one_length_whose_fields_differ_are_the_records(
    parts: list[int],
    times: list[int],
    headers: tuple[tuple[str, bytes | None], ...],
    start: int,
) -> None:
    """What one field has less, another has more: keys and values, and varints and values."""
    records = [
        Record(
            key=b"k" * part,
            value=b"v" * (80 - part - len(varint(time))),
            timestamp_ms=time,
            headers=headers,
        )
        for part, time in zip(parts, cycle(times), strict=False)
    ]
    log = log_of([(records, Compression.NONE), (records[::-1], Compression.NONE)])
    columns = decode_columns(log, start=Offset(start))
    columns.validate(full=True)
    assert columns.equals(columns_of([r for r in decode_records(log) if r.offset >= start]))


@given(
    counts=st.lists(st.integers(90, 130), min_size=2, max_size=5),
    size=st.sampled_from([5, 60, 200]),
    odd=st.tuples(st.integers(0, 4), st.integers(0, 128), st.integers(1, 3)),
)
def test_batches_that_are_alike_but_for_two_records_are_the_records(
    counts: list[int], size: int, odd: tuple[int, int, int]
) -> None:
    """The odd ones make up for each other: only their own lengths tell."""
    batches = [[Record(value=b"x" * size) for _ in range(count)] for count in counts]
    which, at, by = odd
    batch = batches[which % len(batches)]
    at %= len(batch) - 1
    batch[at : at + 2] = [Record(value=b"x" * (size - by)), Record(value=b"x" * (size + by))]
    log = log_of([(batch, Compression.NONE) for batch in batches])
    columns = decode_columns(log)
    columns.validate(full=True)
    assert columns.equals(columns_of(decode_records(log)))


def test_records_of_changing_lengths_are_the_records() -> None:
    sizes = [*range(300), *([80] * 40), *range(8000, 8400), *([3] * 20), 70_000, 0]
    log = log_of([([Record(value=b"x" * size) for size in sizes], Compression.NONE)])
    assert decode_columns(log).equals(columns_of(decode_records(log)))


@given(
    sizes=st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=40), min_size=1, max_size=4),
    value=st.sampled_from([b"x", b"\x00", b"\x00\x01\x0e\x00", bytes(range(256))]),
    key=st.sampled_from([None, b"", b"key"]),
    odd=st.sampled_from([(), (("h", b"v"),), (("h", None), ("", b""))]),
)
def test_records_whose_lengths_vary_are_the_records(
    sizes: list[list[int]],
    value: bytes,
    key: bytes | None,
    odd: tuple[tuple[str, bytes | None], ...],
) -> None:
    """Zeros around lengths are what they are found by: so values are full of them, too."""
    log = log_of(
        [
            (
                [
                    Record(value=(value * size)[:size], key=key, headers=odd if at == 3 else ())
                    for at, size in enumerate(batch)
                ],
                Compression.NONE,
            )
            for batch in sizes
        ]
    )
    assert decode_columns(log).equals(columns_of(decode_records(log)))


@given(
    inner=st.lists(st.integers(0, 60), max_size=20),
    count=st.integers(1, 12),
    last=st.sampled_from([b"", b"\x0d\x00", b"\x80\x80\x01\x00", b"\x02\x00" * 4]),
)
def test_records_inside_of_values_are_not_taken_for_records(
    inner: list[int], count: int, last: bytes
) -> None:
    """Nor is what ends like a record whose length is none."""
    value = encode_batch([Record(value=bytes(size)) for size in inner or [0]])
    records = [Record(value=value[at:] + b"\x00" + last) for at in range(count)]
    log = log_of([(records, Compression.NONE), (records[:1], Compression.NONE)])
    columns = decode_columns(log)
    columns.validate(full=True)
    assert columns.equals(columns_of(decode_records(log)))


def test_what_looks_like_a_record_does_not_stand_for_one_that_does_not() -> None:
    """As many candidates as records: the first one's zeros are another, the third shows none."""
    records = [
        Record(value=b"a"),
        Record(value=b"long", headers=(("h", b"v"),)),
        Record(value=b"c"),
    ]
    log = encode_batch(records)
    assert decode_columns(log, columns=["offset"])["offset"].to_pylist() == [0, 1, 2]
    assert decode_columns(log).equals(columns_of(decode_records(log)))


def test_records_without_headers_are_found_without_hopping() -> None:
    source = Random(7)
    log = log_of(
        [
            ([Record(value=source.randbytes(source.randint(1, 300))) for _ in range(count)], codec)
            for count in (300, 1, 200)
            for codec in (Compression.NONE, Compression.LZ4)
        ]
    )
    joined, sections = join_sections(log, list(iter_headers(log)), bytes_max=1 << 20)
    guessed = guess_starts(np.frombuffer(joined, np.uint8), sections)
    assert guessed is not None
    starts, bodies = guessed
    assert len(starts) == 2 * 501
    assert all(1 <= size <= 2 for size in (bodies - starts).tolist())


@given(batches=BATCHES, start=st.integers(0, 60), length=st.integers(0, 60))
def test_a_range_of_offsets_is_that_part(
    batches: list[tuple[list[Record], Compression]], start: int, length: int
) -> None:
    log, end = log_of(batches), start + length
    expected = [r for r in decode_records(log) if start <= r.offset < end]
    columns = decode_columns(log, start=Offset(start), end=Offset(end))
    assert columns.equals(columns_of(expected))


@given(
    records=RECORDS,
    names=st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True),
)
def test_only_the_columns_asked_for_come_in_the_order_asked_for(
    records: list[Record], names: list[str]
) -> None:
    log = encode_batch(records)
    assert decode_columns(log, columns=names).equals(decode_columns(log).select(names))


def test_what_is_not_asked_for_is_not_looked_at() -> None:
    batch = bytearray(encode_batch([Record(key=b"k", value=b"v")]))
    batch[-1] = 9  # nine headers, and no bytes for them
    seal(batch, 0)
    assert decode_columns(batch, columns=["offset", "value"]).num_rows == 1
    with pytest.raises(CorruptBatch):
        decode_columns(batch)


def test_an_unknown_column_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        decode_columns(b"", columns=["topic"])


def test_no_batches_are_no_rows() -> None:
    assert decode_columns(b"").equals(columns_of([]))
    assert decode_columns(encode_batch(SAMPLE)[:-1]).num_rows == 0


def test_times_are_utc() -> None:
    columns = decode_columns(encode_batch(SAMPLE[:1]))
    assert columns["timestamp"][0].as_py() == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_log_append_time_is_the_time_of_every_record_of_its_batch() -> None:
    log = bytearray(encode_batch(SAMPLE[:2]) + encode_batch(SAMPLE[2:4]))
    place_log_append_time(log, 0, 5)
    columns = decode_columns(log)
    assert columns["timestamp_type"].to_pylist() == [1, 1, 0, 0]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert columns["timestamp"].to_pylist() == [epoch + timedelta(milliseconds=5)] * 2 + [
        epoch + timedelta(milliseconds=r.timestamp_ms) for r in SAMPLE[2:4]
    ]


def test_f13_transaction_markers_are_left_out() -> None:
    marker = encode_batch([Record(key=b"\0\0\0\1")], is_control=True, is_transactional=True)
    assert decode_columns(marker + encode_batch(SAMPLE[:3]) + marker).num_rows == 3


@given(
    batches=BATCHES,
    changes=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=4),
)
def test_bytes_with_a_right_crc_that_are_wrong_are_the_same_error_or_the_same_records(
    batches: list[tuple[list[Record], Compression]], changes: list[tuple[int, int]]
) -> None:
    batch = bytearray(log_of(batches[:1]))
    for at, byte in changes:
        batch[21 + at % (len(batch) - 21)] = byte
    seal(batch, 0)
    try:
        header = read_header(batch)
        records = decode_batch(batch, header, decompressed_bytes_max=1 << 30)
        expected = [] if header.is_control else records
        if any(not -(2**63) <= n < 2**63 for r in records for n in r[:2]):
            raise CorruptBatch(0, "over 64 bits")
    except CorruptBatch:
        with suppress(CorruptBatch):
            # A batch that cannot be read may still be a transaction's marker.
            assert decode_columns(batch).num_rows == 0
        return
    columns = decode_columns(batch)
    assert columns.drop_columns(["timestamp_type"]).equals(
        columns_of(expected).drop_columns(["timestamp_type"])
    )


@given(data=st.binary(max_size=300))
def test_garbage_is_corrupt_or_no_rows(data: bytes) -> None:
    with suppress(CorruptBatch):
        assert decode_columns(data).num_rows == 0


def test_the_bound_is_on_all_batches_together() -> None:
    log = log_of([([Record(value=bytes(10_000))], Compression.ZSTD)] * 3)
    assert decode_columns(log, bytes_max=31_000).num_rows == 3
    with pytest.raises(CorruptBatch, match="inflates"):
        decode_columns(log, bytes_max=29_000)
    plain = log_of([([Record(value=bytes(10_000))], Compression.NONE)] * 3)
    with pytest.raises(CorruptBatch, match="over 29000"):
        decode_columns(plain, bytes_max=29_000)


@pytest.mark.parametrize(
    "odd",
    [
        Record(headers=tuple((f"h{i}", b"") for i in range(100))),
        Record(timestamp_ms=-(2**61)),
        Record(value=b"x", headers=(("\U0001f40c", None),)),
    ],
    ids=["many headers", "far time", "unicode"],
)
def test_the_unusual_is_decoded_too(odd: Record) -> None:
    log = encode_batch([Record(timestamp_ms=5), odd])
    assert decode_columns(log).equals(columns_of(decode_records(log)))


def test_offsets_at_the_end_of_their_range_are_decoded() -> None:
    batch = bytearray(encode_batch(SAMPLE[:2]))
    place(batch, 0, base_offset=Offset(2**63 - 2), epoch=Epoch(0))
    assert decode_columns(batch)["offset"].to_pylist() == [2**63 - 2, 2**63 - 1]
    place(batch, 0, base_offset=Offset(2**63 - 1), epoch=Epoch(0))
    with pytest.raises(CorruptBatch, match="64 bits"):
        decode_columns(batch)


def test_a_header_key_that_is_not_utf8_does_not_hide_its_record() -> None:
    batch = bytearray(encode_batch([Record(headers=(("xx", b"v"),))]))
    at = batch.index(b"xx")
    batch[at : at + 2] = b"\xff\xfe"
    seal(batch, 0)
    assert decode_columns(batch)["headers"][0].as_py() == [{"key": "\ufffd\ufffd", "value": b"v"}]


def test_a_count_of_records_that_cannot_be_there_takes_no_memory() -> None:
    header = read_header(encode_batch(SAMPLE))
    huge = header._replace(record_count=2**31 - 1, last_offset_delta=2**31 - 1)
    with pytest.raises(CorruptBatch):
        decode_columns(build_batch(bytes(100), huge))


@given(values=st.lists(st.integers(-(2**55), 2**55 - 1), min_size=1, max_size=20))
def test_varints_are_read_at_many_positions_at_once(values: list[int]) -> None:
    encoded = [varint(value) for value in values]
    ends = np.cumsum([len(one) for one in encoded])
    starts = ends - [len(one) for one in encoded]
    reader = VarintReader(np.frombuffer(b"".join(encoded), np.uint8))
    read, after = reader.read(starts)
    assert read.tolist() == values
    assert after.tolist() == ends.tolist()


def test_a_varint_of_nine_bytes_is_left_to_the_plain_path() -> None:
    reader = VarintReader(np.frombuffer(varint(2**60) + struct.pack("q", 0), np.uint8))
    with pytest.raises(Unusual):
        reader.read(np.array([0]))


@given(records=st.lists(records_of(headers=st.just(())), min_size=1, max_size=20))
def test_a_memoryview_of_part_of_a_buffer_will_do(records: list[Record]) -> None:
    batch = encode_batch(records)
    view = memoryview(b"before" + batch + b"after")[6 : 6 + len(batch)]
    assert decode_columns(view).equals(decode_columns(batch))


ENCODINGS = st.fixed_dictionaries(
    {
        "compression": CODECS,
        "base_offset": st.integers(0, 2**40).map(Offset),
        "producer_id": st.integers(-1, 100),
        "base_sequence": st.integers(-1, 100),
        "is_transactional": st.booleans(),
    }
)


@given(records=RECORDS, how=ENCODINGS)
def test_a_batch_of_columns_is_the_batch_of_their_records(
    records: list[Record], how: dict[str, Any]
) -> None:
    assert encode_columns(columns_of(records), **how) == encode_batch(records, **how)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 63, 64, 5000, 9000]), min_size=1, max_size=8),
    times=st.lists(st.sampled_from([0, 1, 64, 8192, 2**27, 2**40, 2**56]), min_size=8, max_size=8),
    repeats=st.sampled_from([1, 40]),
)
def test_a_batch_of_columns_of_all_sizes_is_the_batch_of_their_records(
    sizes: list[int], times: list[int], repeats: int
) -> None:
    records = [
        Record(timestamp_ms=time, key=b"k" * (size % 70), value=b"v" * size)
        for size, time in zip(sizes, times, strict=False)
    ] * repeats
    for some in (records, [record._replace(key=None) for record in records]):
        assert encode_columns(columns_of(some)) == encode_batch(some)


def test_offsets_in_a_batch_of_columns_may_take_three_bytes() -> None:
    records = [Record(value=b"")] * 8300
    assert encode_columns(columns_of(records)) == encode_batch(records)


@given(records=RECORDS, cut=st.integers(0, 7))
def test_a_slice_of_columns_is_a_batch_of_that_slice(records: list[Record], cut: int) -> None:
    kept = records[cut:] or records
    sliced = columns_of(records)[len(records) - len(kept) :]
    assert encode_columns(sliced) == encode_batch(kept)


def test_columns_that_are_not_there_are_null() -> None:
    only = pa.record_batch({"value": pa.array(["ä", None])})
    assert encode_columns(only, timestamp_ms=5) == encode_batch(
        [Record(value="ä".encode(), timestamp_ms=5), Record(timestamp_ms=5)]
    )
    keys = pa.record_batch({"key": pa.array([b"a", b""], pa.large_binary())})
    assert encode_columns(keys) == encode_batch([Record(key=b"a"), Record(key=b"")])


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1500, None], pa.timestamp("us", tz="Europe/Berlin")), [1, 9]),
        (pa.array([7, None], pa.int64()), [7, 9]),
        (pa.array([7, 8], pa.timestamp("s")), [7000, 8000]),
    ],
    ids=str,
)
def test_times_come_in_any_unit(array: pa.Array, expected: list[int]) -> None:
    batch = encode_columns(pa.record_batch({"timestamp": array}), timestamp_ms=9)
    assert [record.timestamp_ms for record in decode_records(batch)] == expected


def test_a_list_of_headers_that_is_null_is_none_of_them() -> None:
    headers = pa.array([[{"key": "a", "value": None}], None, []], SCHEMA.field("headers").type)
    batch = encode_columns(pa.record_batch({"headers": headers}))
    assert [record.headers for record in decode_records(batch)] == [(("a", None),), (), ()]


def test_a_header_without_a_key_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b""}]], SCHEMA.field("headers").type)
    with pytest.raises(ValueError, match="without a key"):
        encode_columns(pa.record_batch({"headers": headers}))


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="binary"):
        encode_columns(pa.record_batch({"value": pa.array([1.5])}))


@pytest.mark.parametrize("length", [0, 1, 2, 5, 15, 16, 17, 100, 9000])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_values_of_one_length_make_the_batch_of_their_records(length: int, count: int) -> None:
    records = [
        Record(value=bytes([n % 256]) * length, timestamp_ms=n * 300) for n in range(count + 3)
    ]
    assert encode_columns(columns_of(records)) == encode_batch(records)
    assert encode_columns(columns_of(records)[3:]) == encode_batch(records[3:])
    assert decode_columns(encode_batch(records)).equals(
        columns_of(decode_records(encode_batch(records)))
    )


@pytest.mark.parametrize("names", [["key"], ["value"], ["key", "headers"]], ids=str)
@pytest.mark.parametrize("count", [1, 40])
def test_a_length_beyond_its_record_reads_nothing_from_there(names: list[str], count: int) -> None:
    batch = bytearray(encode_batch([Record(key=b"k" * 9, value=b"v" * 9)] * count))
    for marker in (b"k" * 9, b"v" * 9):
        at = batch.index(marker)
        wrong = bytearray(batch)
        wrong[at - 1] = 126  # 63 bytes
        seal(wrong, 0)
        with suppress(CorruptBatch):
            columns = decode_columns(wrong, columns=names)
            assert all(len(value.as_py() or b"") <= 9 for value in columns[names[0]])
