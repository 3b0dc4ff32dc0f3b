"""The tables of `state.db`, and how a file of an earlier release gets them."""

import sqlite3
from typing import Final

from tidemark.protocol.errors import StorageError

SCHEMA_VERSION: Final = 4
APPLICATION_ID: Final = 0x74_69_64_65  # "tide"

_CACHE_KIB: Final = 512
"""SQLite's own is 2000. What is recorded is read once, by a start, in its order."""

_LEFT_GROUP: Final = """
CREATE TABLE left_group (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
"""

_SCHEMA: Final = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epoch (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    leader INTEGER NOT NULL DEFAULT -1, voters TEXT NOT NULL DEFAULT '',
    outgoing TEXT NOT NULL DEFAULT '', config_version INTEGER NOT NULL DEFAULT -1,
    PRIMARY KEY (topic_id, partition, epoch)
) WITHOUT ROWID;
CREATE TABLE partition (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL,
    log_start INTEGER NOT NULL DEFAULT 0, recovery_point INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '', vote_epoch INTEGER NOT NULL DEFAULT -1, voted_for INTEGER,
    condition INTEGER NOT NULL DEFAULT 0, is_journaled INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE group_snapshot (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL, end_offset INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (topic_id, partition)
);
CREATE TABLE command (version INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE snapshot (version INTEGER NOT NULL, data BLOB NOT NULL);
{_LEFT_GROUP}
"""

# One broker led all epochs and was the only voter.
_FROM_1: Final = """
ALTER TABLE epoch ADD COLUMN leader INTEGER NOT NULL DEFAULT -1;
ALTER TABLE epoch ADD COLUMN voters TEXT NOT NULL DEFAULT '';
ALTER TABLE epoch ADD COLUMN outgoing TEXT NOT NULL DEFAULT '';
UPDATE epoch SET leader = meta.value, voters = meta.value FROM meta WHERE meta.name = 'node_id';
ALTER TABLE partition ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE partition ADD COLUMN vote_epoch INTEGER NOT NULL DEFAULT -1;
ALTER TABLE partition ADD COLUMN voted_for INTEGER;
ALTER TABLE partition ADD COLUMN condition INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partition ADD COLUMN is_journaled INTEGER NOT NULL DEFAULT 1;
INSERT INTO partition (topic_id, partition) SELECT DISTINCT topic_id, partition FROM epoch
    WHERE true ON CONFLICT DO NOTHING;
UPDATE partition SET voted_for = (SELECT value FROM meta WHERE name = 'node_id'),
    vote_epoch = (SELECT coalesce(max(epoch), -1) FROM epoch
        WHERE epoch.topic_id = partition.topic_id AND epoch.partition = partition.partition);
CREATE TABLE group_snapshot (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL, end_offset INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (topic_id, partition)
);
"""

_FROM_3: Final = "ALTER TABLE epoch ADD COLUMN config_version INTEGER NOT NULL DEFAULT -1;"


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Check that the file is ours and whole, or make it so if it is new or older.

    Raises `StorageError`, or SQLite's own errors, for a file that cannot be used.
    """
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    application_id = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if not is_empty and application_id != APPLICATION_ID:
        raise StorageError(f"{path} is a database, but not one of Tidemark's")
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path} has format {version}, and this release reads {SCHEMA_VERSION}: "
            "a newer Tidemark has written it"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    # Where SQLite could not change the mode it goes on without, and says so to nobody: a sync
    # failed, or the file system shares no memory. A commit there is a file that is removed, and
    # with `FULL` its directory is not synced: a power cut could bring it back, and undo the commit.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    if is_empty:
        _change(connection, f"{_SCHEMA} PRAGMA application_id = {APPLICATION_ID};")
        return
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        in_one_line = " ".join(damage.split())
        raise StorageError(f"{path} is damaged: {in_one_line}. Restore it from a copy")
    if version == 1 and _has_metadata(connection):
        raise StorageError(
            f"{path} has format 1, from before there were clusters, and this release cannot take "
            "its topics over. Nothing was changed. Start the release that has written it, and copy "
            "what they hold to a broker of this one, with `tidemark consume` and `produce --json`"
        )
    if version < SCHEMA_VERSION:
        steps = {1: _FROM_1, 2: _LEFT_GROUP, 3: _FROM_3}
        _change(connection, "".join(steps[each] for each in range(version, SCHEMA_VERSION)))


def _has_metadata(connection: sqlite3.Connection) -> bool:
    """Whether there are topics. The first format kept what is known of them in this file: a broker
    that began without it would be empty, and the files of its topics nobody's."""
    tables = ("command", "snapshot")
    return any(connection.execute(f"SELECT 1 FROM {each}").fetchone() for each in tables)


def _change(connection: sqlite3.Connection, script: str) -> None:
    """In one transaction: a crash leaves what was there, or the complete schema."""
    connection.executescript(f"BEGIN; {script} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
