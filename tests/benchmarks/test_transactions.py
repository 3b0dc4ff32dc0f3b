"""The question of transactions, asked in small: who writes and reads what, beside whom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import exactly_once, read_committed, transactional_rate, transactions
from tidemark.testing.process import BrokerProcess, open_broker_process


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("transactions")
    with open_broker_process(directory / "data") as broker:
        yield broker


def test_readers_of_what_is_committed_are_beside_readers_of_all(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That they find so many records, and no others, is part of the question."""
    monkeypatch.setattr(read_committed, "_TRANSACTIONS", 4)
    monkeypatch.setattr(read_committed, "_ALL", 4 * read_committed._PRODUCERS * 10)
    monkeypatch.setattr(read_committed, "_PAIRS", 2)
    rows = list(read_committed.measure(broker))
    assert [row.case.rpartition(", ")[2] for row in rows] == [
        "all committed",
        "every second aborted",
    ]
    assert all((row.runs, row.against) == (2, "read_uncommitted") for row in rows)


def test_a_step_that_counts_exactly_once_is_beside_one_that_counts_at_least_once(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_SMALL", 10), ("_LARGE", 50), ("_RUN", 100), ("_PAIRS", 1)):
        monkeypatch.setattr(exactly_once, name, value)
    rows = list(exactly_once.measure(broker))
    assert [(row.unit, row.aim) for row in rows] == [
        ("records/s", None),
        ("ms", None),
        ("records/s", 0.7),
        ("ms", None),
    ]
    assert all(row.against == "the same at least once" for row in rows)


def test_transactions_of_either_length_are_beside_none(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactional_rate, "_RECORDS", 2_000)
    monkeypatch.setattr(transactional_rate, "_PAIRS", 1)
    rows = list(transactional_rate.measure(broker))
    assert [row.aim for row in rows] == [None, 0.9] * 2
    assert all(row.ratio is not None for row in rows)


def test_what_many_partitions_cost_is_held_to_as_many_transactions(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_MANY", (3, 5)), ("_MANY_PAIRS", 1), ("_OF_MANY", 2)):
        monkeypatch.setattr(transactions, name, value)
    by_clock, cost, *_, alone = transactions._growth(broker)
    assert by_clock.against == "one with one partition"
    assert cost.at_most
    assert cost.against == "as many with one partition"
    assert alone.case.startswith("1 partition")
