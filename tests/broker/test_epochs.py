import pytest

from tidemark.broker.replicas.epochs import EpochStart, EpochTable
from tidemark.protocol.types import Epoch, Offset


def table(*starts: tuple[int, int]) -> EpochTable:
    return EpochTable(EpochStart(Epoch(epoch), Offset(offset)) for epoch, offset in starts)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 10)),
        (1, (0, 10)),  # never was: the one before it
        (2, (2, 25)),
        (3, (2, 25)),
        (5, (5, 40)),  # in force: to the end of the log
        (6, (-1, -1)),  # still to come
        (-1, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    epochs = table((0, 0), (2, 10), (5, 25))
    assert epochs.end_of(Epoch(asked), Offset(40)) == answer


def test_an_epoch_older_than_the_table_ends_where_the_table_begins() -> None:
    assert table((7, 100)).end_of(Epoch(3), Offset(200)) == (3, 100)


def test_an_epoch_without_records_is_forgotten() -> None:
    epochs = table((0, 0), (1, 10), (2, 10), (3, 10))
    assert epochs.starts == (EpochStart(Epoch(0), Offset(0)), EpochStart(Epoch(3), Offset(10)))
    assert epochs.newest == 3


def test_records_have_the_epoch_that_began_at_or_before_them() -> None:
    epochs = table((1, 5), (4, 10))
    assert [epochs.epoch_at(Offset(offset)) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 4, 4]


def test_an_empty_table_knows_nothing() -> None:
    assert EpochTable().newest == -1
    assert EpochTable().end_of(Epoch(0), Offset(0)) == (-1, -1)
