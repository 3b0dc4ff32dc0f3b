"""Columns of records that lie alike, almost alike, or only seem to."""

from itertools import cycle
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.protocol.records.column_batches import columns_of, log_of
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.records.columns import decode_columns
from tidemark.protocol.records.columns.grids import Grids
from tidemark.protocol.records.columns.guess import guess_starts
from tidemark.protocol.records.columns.sections import join_sections
from tidemark.protocol.records.columns.varints import VarintReader
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    iter_headers,
)
from tidemark.protocol.records.records import (
    Record,
    decode_records,
    encode_batch,
)
from tidemark.protocol.records.varints import varint
from tidemark.protocol.types import Offset


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
@example(parts=[20, 30] * 10, times=[0], headers=(), start=0)
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
    joined, sections = join_sections(log, list(iter_headers(log)), bytes_max=1 << 20)
    assert guess_starts(np.frombuffer(joined, np.uint8), sections) is None
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
