"""`state.db`: what was recorded is there after a restart, all of it or nothing."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.descriptors import few_descriptors
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.left_groups import leave, left_epochs
from tidemark.partitions.storage.state_db import (
    NO_VOTE,
    Condition,
    GroupSnapshot,
    PartitionKey,
    PartitionState,
    StateDb,
)
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

TOPIC = UUID(int=7)
KEY = PartitionKey(TOPIC, 3)
OTHER = PartitionKey(TOPIC, 4)
THIRD = PartitionKey(TOPIC, 5)


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


@pytest.mark.parametrize("left", range(3))
def test_where_there_is_no_descriptor_nobody_is_told_to_restore_a_copy(
    path: str, left: int
) -> None:
    """With some, the file itself is opened, and what is beside it is not."""
    StateDb.open(path).close()
    with few_descriptors(left), pytest.raises(StorageError, match="ulimit -n") as caught:
        StateDb.open(path)
    assert "copy" not in str(caught.value)


# Runs


def test_a_directory_keeps_its_id_and_counts_its_runs(path: str) -> None:
    db = StateDb.open(path)
    first = db.begin_run("boot")
    second = reopened(db, path).begin_run("boot")
    assert (first.directory_id, first.incarnation) == (second.directory_id, 1)
    assert second.incarnation == 2


def test_two_directories_have_different_ids(path: str, tmp_path: Path) -> None:
    other = StateDb.open(str(tmp_path / "other.db"))
    assert StateDb.open(path).directory_id != other.directory_id


def test_a_new_directory_can_be_given_its_id() -> None:
    assert StateDb.open(":memory:", new_id=UUID(int=5)).directory_id == UUID(int=5)


def test_the_page_cache_is_lost_with_another_boot_unless_the_stop_was_clean(path: str) -> None:
    db = StateDb.open(path)
    assert not db.begin_run("first").is_cache_lost, "nothing was ever written"
    assert not db.begin_run("first").is_cache_lost, "the process died, the machine went on"
    assert db.begin_run("second").is_cache_lost
    db.end_run()
    assert not reopened(db, path).begin_run("third").is_cache_lost


def test_the_page_cache_is_lost_with_a_sync_that_failed_though_the_machine_goes_on(
    path: str,
) -> None:
    db = StateDb.open(path)
    db.begin_run("first")
    db.save([PartitionState(key=KEY, name="a-0", is_journaled=False)])
    assert db.begin_run("first", has_sync_failed=True).is_cache_lost
    assert db.partition_states()[KEY].condition is Condition.UNCLEAN


def test_what_was_in_the_page_cache_only_is_unclean_after_it_was_lost(path: str) -> None:
    db = StateDb.open(path)
    db.begin_run("first")
    states = [
        PartitionState(key=KEY, name="a-0", is_journaled=False),
        PartitionState(key=OTHER, name="a-1"),
        PartitionState(key=THIRD, name="a-2", is_journaled=False, condition=Condition.DAMAGED),
    ]
    db.save(states)
    db.begin_run("second")
    db.begin_run("second")
    conditions = {key: s.condition for key, s in reopened(db, path).partition_states().items()}
    assert conditions == {
        KEY: Condition.UNCLEAN,
        OTHER: Condition.CLEAN,
        THIRD: Condition.DAMAGED,
    }


# Partitions


def state(key: PartitionKey, epochs: int = 2) -> PartitionState:
    """One with something in every field."""
    config = Configuration((NodeId(1), NodeId(2), NodeId(12)), (NodeId(1), NodeId(3)), 1 << 40)
    return PartitionState(
        key=key,
        name=f"orders-{key.partition}",
        log_start=Offset(5),
        recovery_point=Offset(50),
        hard_state=HardState(Epoch(9), NodeId(2)),
        epochs=tuple(
            EpochStart(Epoch(3 * n), Offset(10 * n), NodeId(n), config) for n in range(epochs)
        ),
        condition=Condition.UNCLEAN,
        is_journaled=False,
    )


def test_all_of_a_partition_is_there_again(path: str) -> None:
    db = StateDb.open(path)
    new = PartitionState(key=OTHER, name="new-0")
    db.save([state(KEY), new])
    assert reopened(db, path).partition_states() == {KEY: state(KEY), OTHER: new}
    assert new.hard_state == NO_VOTE


def test_a_partition_saved_again_is_as_it_was_saved_last(path: str) -> None:
    db = StateDb.open(path)
    db.save([state(KEY, epochs=5), state(OTHER)])
    db.save([state(KEY, epochs=1)])
    assert reopened(db, path).partition_states() == {KEY: state(KEY, epochs=1), OTHER: state(OTHER)}


def test_a_checkpoint_and_its_mark_are_one_transaction(path: str) -> None:
    db = StateDb.open(path)
    assert db.journal_start is None
    db.save([state(KEY)], journal_start=7)
    with pytest.raises(StorageError):
        db.save([state(OTHER), replace(state(KEY), epochs=state(KEY).epochs * 2)], journal_start=9)
    db = reopened(db, path)
    assert (db.journal_start, db.partition_states()) == (7, {KEY: state(KEY)})


def test_one_partition_is_read_without_the_others(path: str) -> None:
    db = StateDb.open(path)
    db.save([state(KEY, epochs=2), state(OTHER, epochs=3)])
    assert db.partition_state(KEY) == state(KEY, epochs=2)
    assert db.partition_state(THIRD) is None


def test_ten_thousand_partitions_are_one_transaction(path: str) -> None:
    db = StateDb.open(path)
    begun: list[str] = []
    db._connection.set_trace_callback(begun.append)
    db.save(state(PartitionKey(TOPIC, number)) for number in range(10_000))
    assert [statement for statement in begun if statement.startswith("COMMIT")] == ["COMMIT"]
    db._connection.set_trace_callback(None)
    assert len(db.partition_states()) == 10_000


def test_a_group_has_its_last_snapshot(path: str) -> None:
    db = StateDb.open(path)
    assert db.group_snapshot(KEY) is None
    for offset in (5, 9):
        position = Position(Epoch(2), Offset(offset))
        db.save_group_snapshot(KEY, GroupSnapshot(position, b"state %d" % offset))
    assert reopened(db, path).group_snapshot(KEY) == GroupSnapshot(position, b"state 9")


def test_a_file_of_the_first_release_is_brought_up_to_date(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """
        CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE epoch (
            topic_id BLOB NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,
            start_offset INTEGER NOT NULL,
            PRIMARY KEY (topic_id, partition, epoch)
        ) WITHOUT ROWID;
        CREATE TABLE partition (
            topic_id BLOB NOT NULL, partition INTEGER NOT NULL,
            log_start INTEGER NOT NULL DEFAULT 0, recovery_point INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (topic_id, partition)
        ) WITHOUT ROWID;
        CREATE TABLE command (version INTEGER PRIMARY KEY, data BLOB NOT NULL);
        CREATE TABLE snapshot (version INTEGER NOT NULL, data BLOB NOT NULL);
        INSERT INTO meta VALUES ('node_id', '4'), ('cluster_id', 'c');
        PRAGMA application_id = 0x74696465; PRAGMA user_version = 1;
        """
    )
    for partition, epoch, start_offset in ((3, 1, 0), (3, 2, 70), (4, 1, 0)):
        row = (TOPIC.bytes, partition, epoch, start_offset)
        connection.execute("INSERT INTO epoch VALUES (?, ?, ?, ?)", row)
    connection.execute("INSERT INTO partition VALUES (?, 3, 5, 60)", (TOPIC.bytes,))
    connection.close()

    db = reopened(StateDb.open(path), path)
    me, alone = NodeId(4), Configuration((NodeId(4),))
    starts = [EpochStart(Epoch(e), Offset(o), me, alone) for e, o in ((1, 0), (2, 70))]
    assert db.partition_states() == {
        KEY: PartitionState(
            key=KEY,
            name="",
            log_start=Offset(5),
            recovery_point=Offset(60),
            hard_state=HardState(Epoch(2), me),
            epochs=tuple(starts),
        ),
        OTHER: PartitionState(
            key=OTHER, name="", hard_state=HardState(Epoch(1), me), epochs=tuple(starts[:1])
        ),
    }
    assert db.meta("cluster_id") == "c"


@pytest.mark.parametrize("table", ["command", "snapshot"])
def test_topics_of_the_first_release_are_not_begun_without(path: str, table: str) -> None:
    StateDb.open(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(f"INSERT INTO {table} VALUES (1, x'01'); PRAGMA user_version = 1;")
    with pytest.raises(StorageError, match=r"state\.db has format 1, .* Nothing was changed"):
        StateDb.open(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,), "who wrote it can read it"
    connection.close()


def test_a_deleted_partition_leaves_nothing(path: str) -> None:
    db = StateDb.open(path)
    db.save([state(KEY), state(OTHER)])
    db.save_group_snapshot(KEY, GroupSnapshot(Position(Epoch(1), Offset(1)), b""))
    db.forget_partitions([KEY])
    assert db.group_snapshot(KEY) is None
    assert db.partition_states() == {OTHER: state(OTHER)}
    db.save([state(KEY, epochs=0)])
    assert db.partition_state(KEY) == state(KEY, epochs=0), "its epochs are gone, too"


def test_a_file_of_the_second_format_remembers_what_is_left_from_now_on(path: str) -> None:
    StateDb.open(path).close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TABLE left_group; ALTER TABLE epoch DROP COLUMN config_version;"
        " PRAGMA user_version = 2;"
    )
    connection.close()
    db = StateDb.open(path)
    leave(db, {KEY: Epoch(4)})
    assert left_epochs(reopened(db, path)) == {KEY: 4}


def test_voters_of_a_file_of_the_third_format_are_of_no_wish(path: str) -> None:
    db = StateDb.open(path)
    before = state(KEY)
    db.save([before])
    db.close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE epoch DROP COLUMN config_version; PRAGMA user_version = 3;"
    )
    connection.close()
    after = StateDb.open(path).partition_states()[KEY].epochs
    configs = [replace(start.config, version=-1) for start in before.epochs]
    assert [start.config for start in after] == configs


def test_a_transaction_that_fails_changes_nothing(path: str) -> None:
    db = StateDb.open(path)
    with contextlib.suppress(KeyError), db.transaction():
        db.set_meta("node_id", "1")
        db.save([state(KEY)])
        raise KeyError
    assert (db.meta("node_id"), db.partition_states()) == (None, {})


def test_a_commit_is_synced(path: str) -> None:
    db = StateDb.open(path)
    with db.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
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
    db.save(state(PartitionKey(TOPIC, number)) for number in range(1000))
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


def test_a_file_that_may_not_be_written_is_not_to_be_restored_from_a_copy(path: str) -> None:
    db = StateDb.open(path)
    # Whatever the system says of files that are not the user's, root may write them.
    db._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(StorageError, match="Let the broker's user write to it") as caught:
        db.set_meta("name", "value")
    assert "copy" not in str(caught.value)
    db.close()
