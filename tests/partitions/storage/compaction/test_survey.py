"""Which batches were given up, as a survey of the log has found it."""

import time

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.storage.compaction.survey import Survey
from tidemark.protocol.records.header import BatchHeader, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, ProducerId

PRODUCER = ProducerId(7)


def batch_at(offset: int) -> BatchHeader:
    """Of a transaction."""
    return read_header(
        encode_batch(
            [Record()], base_offset=Offset(offset), producer_id=PRODUCER, is_transactional=True
        )
    )


def surveyed(reaches: list[tuple[int, int]]) -> Survey:
    aborted = [(Offset(first), Offset(marker)) for first, marker in reaches]
    return Survey(Offset(1_000_000), aborted={PRODUCER: aborted})


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=6))
def test_a_batch_is_aborted_if_it_lies_between_a_beginning_and_its_marker(
    steps: list[tuple[int, int]],
) -> None:
    reaches, end = [], 0
    for distance, length in steps:
        first = end + distance
        reaches.append((first, first + length))
        end = first + length + 1
    survey = surveyed(reaches)
    for offset in range(end + 3):
        expected = any(first <= offset < marker for first, marker in reaches)
        assert survey.is_aborted(batch_at(offset)) == expected
        assert not survey.is_aborted(batch_at(offset)._replace(producer_id=8))


def test_a_batch_is_looked_up_quickly_among_many_transactions_that_were_given_up() -> None:
    survey, last = surveyed([(2 * each, 2 * each + 1) for each in range(20_000)]), batch_at(39_998)
    started = time.process_time()
    for _ in range(20_000):
        assert survey.is_aborted(last)
    assert time.process_time() - started < 5
