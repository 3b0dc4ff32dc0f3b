import pytest

from tidemark.client.fetch_buffer import FetchBuffer, Reading
from tidemark.client.records import FetchedBatches
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, Offset, TopicPartition

T0 = TopicPartition("t", 0)


def fetched(offset: int, size: int = 10) -> FetchedBatches:
    return FetchedBatches(
        T0, Offset(offset), Offset(offset + 1), Offset(9), Epoch(0), memoryview(bytes(size))
    )


def test_what_arrived_first_is_handed_out_first() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    for offset in range(3):
        buffer.put(reading, fetched(offset))
    assert buffer.buffered_bytes == reading.buffered_bytes == 30
    taken = [buffer.take(lambda _: True) for _ in range(4)]
    assert [item and item[1].fetch_offset for item in taken] == [0, 1, 2, None]
    assert buffer.buffered_bytes == reading.buffered_bytes == 0


def test_what_was_fetched_before_a_jump_is_dropped() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    buffer.put(reading, fetched(0))
    reading.jump(Offset(7))
    buffer.put(reading, fetched(7))
    taken = buffer.take(lambda _: True)
    assert taken is not None
    assert taken[1].fetch_offset == 7
    assert buffer.buffered_bytes == reading.buffered_bytes == 0


def test_what_is_not_wanted_any_more_is_dropped() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    buffer.put(reading, fetched(0))
    assert buffer.take(lambda _: False) is None
    assert buffer.buffered_bytes == 0


def test_a_failure_is_told_once_and_before_what_came_of_others() -> None:
    buffer, reading, other = (
        FetchBuffer(),
        Reading(T0, Offset(0), None),
        Reading(TopicPartition("t", 1), Offset(0), None),
    )
    buffer.put(other, fetched(0))
    buffer.fail(reading, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert reading.is_failed
    with pytest.raises(RequestError):
        buffer.take(lambda _: True)
    taken = [buffer.take(lambda _: True) for _ in range(2)]
    assert [item is not None for item in taken] == [True, False]


def test_a_failure_is_told_when_all_that_came_before_it_was_taken() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    for offset in range(2):
        buffer.put(reading, fetched(offset))
    buffer.fail(reading, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE))
    for _ in range(2):
        assert buffer.take(lambda _: True) is not None
        assert reading.is_failed, "nothing more of it is fetched meanwhile"
    with pytest.raises(RequestError):
        buffer.take(lambda _: True)
    assert buffer.take(lambda _: True) is None


def test_a_failure_of_what_nobody_reads_does_not_wait_for_what_nobody_takes() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    buffer.put(reading, fetched(0))
    buffer.fail(reading, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert buffer.take(lambda _: False) is None
    assert not reading.is_failed
    assert buffer.take(lambda _: True) is None, "it is gone"


def test_a_failure_of_what_is_paused_is_tried_again() -> None:
    buffer, reading = FetchBuffer(), Reading(T0, Offset(0), None)
    buffer.fail(reading, RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    reading.is_paused = True
    assert buffer.take(lambda each: not each.is_paused) is None
    assert not reading.is_failed


def test_a_failure_where_nobody_reads_any_more_is_not_told() -> None:
    buffer, reading, other = (
        FetchBuffer(),
        Reading(T0, Offset(0), None),
        Reading(T0, Offset(0), None),
    )
    buffer.fail(reading, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE))
    reading.jump(Offset(4))
    buffer.fail(other, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert buffer.take(lambda each: each is reading) is None


def test_a_reading_is_at_its_end_when_all_of_it_was_handed_out() -> None:
    reading = Reading(T0, Offset(3), Offset(5))
    reading.fetch_offset = Offset(5)
    assert (reading.is_fetched, reading.is_at_end) == (True, False)
    reading.position = Offset(5)
    assert (reading.is_fetched, reading.is_at_end) == (True, True)
    assert not Reading(T0, Offset(3), None).is_at_end
