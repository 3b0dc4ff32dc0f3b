"""`state.db`: what was recorded is there after a restart, all of it or nothing."""

import contextlib
import sqlite3
from pathlib import Path
from uuid import UUID

import pytest

from tidemark.partitions.storage.state_db import Command, EpochRow, PartitionKey, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, Offset

TOPIC = UUID(int=7)
KEY = PartitionKey(TOPIC, 3)
OTHER = PartitionKey(TOPIC, 4)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state.db")


def reopened(db: StateDb, path: str) -> StateDb:
    db.close()
    return StateDb.open(path)


def test_identity_survives_a_restart(path: str) -> None:
    db = StateDb.open(path)
    assert db.meta("cluster_id") is None
    db.set_meta("cluster_id", "first")
    db.set_meta("cluster_id", "second")
    assert reopened(db, path).meta("cluster_id") == "second"


def test_epochs_are_kept_per_partition_in_order(path: str) -> None:
    db = StateDb.open(path)
    rows = [EpochRow(Epoch(epoch), Offset(epoch * 10)) for epoch in (1, 2, 5)]
    db.append_epochs([(KEY, row) for row in reversed(rows)])
    db.append_epochs([(OTHER, rows[0])])
    assert reopened(db, path).epochs() == {KEY: rows, OTHER: rows[:1]}


def test_an_epoch_is_opened_once(path: str) -> None:
    db = StateDb.open(path)
    db.append_epochs([(KEY, EpochRow(Epoch(1), Offset(0)))])
    with pytest.raises(StorageError):
        db.append_epochs([(KEY, EpochRow(Epoch(1), Offset(9)))])
    assert db.epochs() == {KEY: [EpochRow(Epoch(1), Offset(0))]}


def test_replacing_epochs_leaves_those_of_other_partitions(path: str) -> None:
    db = StateDb.open(path)
    row = EpochRow(Epoch(1), Offset(0))
    db.append_epochs([(KEY, row), (OTHER, row)])
    db.replace_epochs(KEY, [EpochRow(Epoch(4), Offset(2))])
    assert db.epochs() == {KEY: [EpochRow(Epoch(4), Offset(2))], OTHER: [row]}


def test_log_starts_and_recovery_points_do_not_disturb_each_other(path: str) -> None:
    db = StateDb.open(path)
    db.set_recovery_points({KEY: Offset(100), OTHER: Offset(5)})
    db.set_log_starts({KEY: Offset(40)})
    db = reopened(db, path)
    assert db.recovery_points() == {KEY: 100, OTHER: 5}
    assert db.log_starts() == {KEY: 40, OTHER: 0}


def test_a_deleted_partition_leaves_nothing(path: str) -> None:
    db = StateDb.open(path)
    db.set_recovery_points({KEY: Offset(1), OTHER: Offset(2)})
    db.append_epochs([(KEY, EpochRow(Epoch(1), Offset(0)))])
    db.forget_partitions([KEY])
    assert (db.epochs(), db.recovery_points()) == ({}, {OTHER: 2})


def test_a_transaction_that_fails_changes_nothing(path: str) -> None:
    db = StateDb.open(path)
    with contextlib.suppress(KeyError), db.transaction():
        db.set_meta("node_id", "1")
        db.set_recovery_points({KEY: Offset(1)})
        raise KeyError
    assert (db.meta("node_id"), db.recovery_points()) == (None, {})


def test_a_thousand_partitions_are_one_transaction(path: str) -> None:
    db = StateDb.open(path)
    keys = [PartitionKey(TOPIC, number) for number in range(1000)]
    begun: list[str] = []
    db._connection.set_trace_callback(begun.append)
    db.append_epochs((key, EpochRow(Epoch(1), Offset(0))) for key in keys)
    assert [statement for statement in begun if statement.startswith("COMMIT")] == ["COMMIT"]
    assert len(db.epochs()) == 1000


def test_a_snapshot_takes_the_place_of_the_commands_up_to_it(path: str) -> None:
    db = StateDb.open(path)
    db.append_commands(Command(version, bytes([version])) for version in range(1, 6))
    db.replace_snapshot(Command(3, b"state"))
    db = reopened(db, path)
    assert db.snapshot() == Command(3, b"state")
    assert db.commands() == [Command(4, b"\4"), Command(5, b"\5")]


def test_a_command_version_is_given_once(path: str) -> None:
    db = StateDb.open(path)
    db.append_commands([Command(1, b"a")])
    with pytest.raises(StorageError):
        db.append_commands([Command(2, b"b"), Command(1, b"c")])
    assert db.commands() == [Command(1, b"a")]


def test_a_commit_is_synced(path: str) -> None:
    db = StateDb.open(path)
    with db.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_is_no_database_is_refused(path: str) -> None:
    Path(path).write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match=r"state\.db: file is not a database"):
        StateDb.open(path)


def test_a_database_of_something_else_is_refused(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StorageError, match="not one of Tidemark's"):
        StateDb.open(path)


def test_a_newer_format_is_refused(path: str) -> None:
    StateDb.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match="format 99"):
        StateDb.open(path)


def test_a_damaged_file_is_refused_in_one_line(path: str) -> None:
    db = StateDb.open(path)
    db.append_commands(Command(version, bytes(500)) for version in range(100))
    db.close()
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 30_000)
    with pytest.raises(StorageError) as caught:
        StateDb.open(path)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        StateDb.open(str(tmp_path / "missing" / "state.db"))
