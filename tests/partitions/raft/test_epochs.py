"""A log's shape, against the log itself: a list of entries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.raft.rows import ONE, at, row
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.epochs import LogShape
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, ORIGIN, Epoch, NodeId, Offset, Position

TWO = Configuration((NodeId(1), NodeId(2)))


def shape_of(*rows: tuple[int, int], end: int, start: int = 0) -> LogShape:
    return LogShape(
        [row(epoch, start) for epoch, start in rows],
        start_offset=Offset(start),
        end_offset=Offset(end),
        config=ONE,
    )


@st.composite
def logs(draw: st.DrawFn) -> list[Position]:
    """The ends of a log's entries: an epoch's start, then records one by one."""
    positions, epoch, offset = [], -1, 0
    for gap, records in draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=6)):
        epoch += gap
        positions += [at(epoch, end) for end in range(offset, offset + records + 1)]
        offset += records
    return positions


def build(log: Sequence[Position]) -> LogShape:
    """By the events that made it."""
    shape = LogShape(start_offset=Offset(0), end_offset=Offset(0), config=ONE)
    for position in log:
        if position.epoch > shape.last.epoch:
            shape.begin(row(*position))
        else:
            shape.extend(position.offset)
    return shape


@given(logs(), st.integers(-1, 20), st.integers(0, 20))
def test_it_contains_what_the_log_contains(log: list[Position], epoch: int, offset: int) -> None:
    shape = build(log)
    asked = at(epoch, offset)
    assert shape.contains(asked) == (asked in log or asked == ORIGIN)
    assert shape.last == max(log, default=ORIGIN)


@given(logs(), st.integers(-1, 20))
def test_the_floor_is_the_last_entry_of_the_largest_epoch_at_or_below(
    log: list[Position], epoch: int
) -> None:
    below = [position for position in log if position.epoch <= epoch]
    assert build(log).floor(Epoch(epoch)) == max(below, default=ORIGIN)


@given(logs(), st.data())
def test_truncation_leaves_the_log_up_to_there(log: list[Position], data: st.DataObject) -> None:
    to = data.draw(st.sampled_from([ORIGIN, *log]))
    shape, expected = build(log), build([position for position in log if position <= to])
    shape.truncate(to)
    assert (shape.rows, shape.last) == (expected.rows, expected.last)


@given(logs(), st.data())
def test_a_trimmed_shape_answers_as_before_from_its_start_on(
    log: list[Position], data: st.DataObject
) -> None:
    shape, whole = build(log), build(log)
    start = data.draw(st.integers(0, whole.end_offset))
    shape.trim(Offset(start))
    assert shape.start_offset == start
    for position in log:
        if position.offset >= start:
            assert shape.contains(position)
            assert shape.floor(position.epoch) == whole.floor(position.epoch)
    for offset in range(start, whole.end_offset):
        assert shape.epoch_at(Offset(offset)) == whole.epoch_at(Offset(offset))
    assert shape.contains(shape.start)
    assert shape.start in (ORIGIN, *log)
    again = LogShape(
        whole.rows, start_offset=Offset(start), end_offset=whole.end_offset, config=ONE
    )
    assert again.rows == shape.rows


@given(logs(), st.data())
def test_a_reset_takes_over_the_leaders_log_start(log: list[Position], data: st.DataObject) -> None:
    leader = build(log)
    leader.trim(Offset(data.draw(st.integers(0, leader.end_offset))))
    follower = LogShape(start_offset=Offset(0), end_offset=Offset(0), config=TWO)
    follower.reset(leader.start, leader.rows_up_to(leader.start))
    assert follower.start == follower.last == leader.start
    assert follower.end_offset == follower.start_offset == leader.start_offset
    for position in log:
        if position > leader.start:
            if position.epoch > follower.last.epoch:
                follower.begin(row(*position))
            else:
                follower.extend(position.offset)
    assert follower.last == leader.last


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (NO_EPOCH, NO_OFFSET)),
        (0, (0, 5)),
        (1, (0, 5)),  # never was: the one before it (apache/kafka#5678)
        (2, (2, 5)),  # without a record
        (3, (3, 9)),
        (4, (NO_EPOCH, NO_OFFSET)),  # still to come
    ],
)
def test_where_an_epoch_ends_as_clients_ask(epoch: int, answer: tuple[int, int]) -> None:
    assert shape_of((0, 0), (2, 5), (3, 5), end=9).end_of(Epoch(epoch)) == answer


def test_an_epoch_older_than_the_table_ends_where_the_table_begins() -> None:
    assert shape_of((3, 5), end=9, start=6).end_of(Epoch(1)) == (1, 5)
    assert shape_of((3, 5), end=9, start=6).epoch_at(Offset(2)) == NO_EPOCH


def test_an_empty_table_knows_no_epoch() -> None:
    assert shape_of(end=0).end_of(Epoch(0)) == (NO_EPOCH, NO_OFFSET)
    assert shape_of(end=0).last == ORIGIN


def test_the_configuration_is_that_of_the_last_row_and_goes_back_with_it() -> None:
    shape = shape_of((0, 0), end=3)
    shape.begin(row(1, 3, TWO))
    assert shape.config == TWO
    shape.truncate(at(0, 3))
    assert shape.config == ONE
    shape.truncate(ORIGIN)
    assert shape.config == ONE


def test_the_position_of_an_end_offset_is_that_of_its_last_record() -> None:
    shape = shape_of((0, 0), (2, 3), (4, 3), end=7)
    assert [shape.position_of(Offset(end)) for end in (0, 3, 4)] == [ORIGIN, at(0, 3), at(4, 4)]
