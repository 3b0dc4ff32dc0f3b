"""What the journal says: one record per thing that happened to a partition.

Payloads, big-endian, `position` being an int32 epoch and an int64 offset:

| kind          | payload |
|---------------|---------|
| `BATCHES`     | whole record batches of one epoch, back to back, as they lie in the log |
| `EPOCH_START` | epoch int32, start offset int64, leader int32, voter count uint16, outgoing |
|               | voter count uint16, then those node ids, int32 each |
| `TRUNCATE`    | position: the log ends there, and so does the epoch table |
| `RESET`       | position, count uint32, that many epoch starts; the rest is a snapshot of |
|               | the state machine |
| `HARD_STATE`  | epoch int32, voted for int32 (-1: nobody) |
| `LOG_START`   | offset int64; the rest, if there is any, is a snapshot of what follows from the |
|               | batches below, to be kept beside the log |
| `FORGET`      | nothing: the partition was deleted |
| `SYNCED`      | end offset int64: up to there the log's segments were synced before |
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from tidemark.partitions.raft.entries import UNVERSIONED, Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import BytesLike, Epoch, NodeId, Offset, Position

_POSITION: Final = Struct(">iq")
_EPOCH_START: Final = Struct(">iqiHH")
_COUNT: Final = Struct(">I")
_HARD_STATE: Final = Struct(">ii")
_OFFSET: Final = Struct(">q")
_NODE_ID_BYTES: Final = 4
_VERSION: Final = Struct(">q")
_HAS_VERSION: Final = 0x8000
"""Beside the number of voters: the configuration's version comes before their ids."""
_NOBODY: Final = -1


class RecordKind(IntEnum):
    BATCHES = 1
    EPOCH_START = 2
    TRUNCATE = 3
    RESET = 4
    HARD_STATE = 5
    LOG_START = 6
    FORGET = 7
    SYNCED = 8


class JournalRecord(NamedTuple):
    """One thing that happened to one partition. The payload must not change until it is written."""

    key: PartitionKey
    kind: RecordKind
    payload: BytesLike


# Made for every run of batches: calling the class, and looking for its kind, take several times as
# long.
_record: Final = partial(tuple.__new__, JournalRecord)
_BATCHES: Final = RecordKind.BATCHES
_SYNCED: Final = RecordKind.SYNCED


class Reset(NamedTuple):
    """A log that begins anew: where, the epochs before that, the state machine's state there."""

    start: Position
    table: tuple[EpochStart, ...]
    snapshot: bytes


class LogStart(NamedTuple):
    """Where a log begins from now on, and what is to be remembered of what lay below."""

    offset: Offset
    snapshot: bytes


def batches(key: PartitionKey, records: BytesLike) -> JournalRecord:
    """Batches of one epoch, with their offsets and epoch in place."""
    return _record((key, _BATCHES, records))


def epoch_start(key: PartitionKey, start: EpochStart) -> JournalRecord:
    return JournalRecord(key, RecordKind.EPOCH_START, _encode_epoch_start(start))


def truncate(key: PartitionKey, to: Position) -> JournalRecord:
    """To be durable before the log is cut."""
    return JournalRecord(key, RecordKind.TRUNCATE, _POSITION.pack(*to))


def reset(
    key: PartitionKey, start: Position, table: Sequence[EpochStart], snapshot: bytes = b""
) -> JournalRecord:
    """To be durable before the log is given up."""
    rows = b"".join(map(_encode_epoch_start, table))
    payload = _POSITION.pack(*start) + _COUNT.pack(len(table)) + rows + snapshot
    return JournalRecord(key, RecordKind.RESET, payload)


def hard_state(key: PartitionKey, state: HardState) -> JournalRecord:
    voted_for = _NOBODY if state.voted_for is None else state.voted_for
    return JournalRecord(key, RecordKind.HARD_STATE, _HARD_STATE.pack(state.epoch, voted_for))


def log_start(key: PartitionKey, offset: Offset, snapshot: bytes = b"") -> JournalRecord:
    """To be durable before what is below is removed."""
    return JournalRecord(key, RecordKind.LOG_START, _OFFSET.pack(offset) + snapshot)


def forget(key: PartitionKey) -> JournalRecord:
    """To be durable before the key is used again."""
    return JournalRecord(key, RecordKind.FORGET, b"")


def synced(key: PartitionKey, end: Offset) -> JournalRecord:
    """In place of batches that are large: to be written once a sync of the log has covered them."""
    return _record((key, _SYNCED, _OFFSET.pack(end)))


def decode_epoch_start(payload: BytesLike) -> EpochStart:
    start, end = _read_epoch_start(payload, 0)
    _check_end(payload, end)
    return start


def decode_truncate(payload: BytesLike) -> Position:
    _check_end(payload, _POSITION.size)
    return _read_position(payload)


def decode_reset(payload: BytesLike) -> Reset:
    start = _read_position(payload)
    (count,) = _COUNT.unpack_from(payload, _POSITION.size)
    at, table = _POSITION.size + _COUNT.size, []
    for _ in range(count):
        row, at = _read_epoch_start(payload, at)
        table.append(row)
    return Reset(start, tuple(table), bytes(payload[at:]))


def decode_hard_state(payload: BytesLike) -> HardState:
    _check_end(payload, _HARD_STATE.size)
    epoch, voted_for = _HARD_STATE.unpack(payload)
    return HardState(Epoch(epoch), None if voted_for == _NOBODY else NodeId(voted_for))


def decode_log_start(payload: BytesLike) -> LogStart:
    _check_end(payload[: _OFFSET.size], _OFFSET.size)
    (offset,) = _OFFSET.unpack_from(payload)
    return LogStart(Offset(offset), bytes(payload[_OFFSET.size :]))


def decode_synced(payload: BytesLike) -> Offset:
    _check_end(payload, _OFFSET.size)
    return Offset(_OFFSET.unpack(payload)[0])


def _encode_epoch_start(start: EpochStart) -> bytes:
    config = start.config
    count, version = len(config.voters), b""
    if config.version != UNVERSIONED:
        count, version = count | _HAS_VERSION, _VERSION.pack(config.version)
    fixed = _EPOCH_START.pack(
        start.epoch, start.start_offset, start.leader, count, len(config.outgoing)
    )
    ids = (*config.voters, *config.outgoing)
    return fixed + version + b"".join(each.to_bytes(_NODE_ID_BYTES, "big") for each in ids)


def _read_epoch_start(payload: BytesLike, at: int) -> tuple[EpochStart, int]:
    epoch, start_offset, leader, voter_count, outgoing_count = _EPOCH_START.unpack_from(payload, at)
    at += _EPOCH_START.size
    version = UNVERSIONED
    if voter_count & _HAS_VERSION:
        (version,) = _VERSION.unpack_from(payload, at)
        at += _VERSION.size
    voters, at = _read_ids(payload, at, voter_count & ~_HAS_VERSION)
    outgoing, at = _read_ids(payload, at, outgoing_count)
    config = Configuration(voters, outgoing, version)
    return EpochStart(Epoch(epoch), Offset(start_offset), NodeId(leader), config), at


def _read_ids(payload: BytesLike, at: int, count: int) -> tuple[tuple[NodeId, ...], int]:
    end = at + count * _NODE_ID_BYTES
    if end > len(payload):
        raise StorageError(f"a journal record ends within its {count} node ids")
    starts = range(at, end, _NODE_ID_BYTES)
    ids = (NodeId(int.from_bytes(payload[i : i + _NODE_ID_BYTES], "big")) for i in starts)
    return tuple(ids), end


def _read_position(payload: BytesLike) -> Position:
    epoch, offset = _POSITION.unpack_from(payload)
    return Position(Epoch(epoch), Offset(offset))


def _check_end(payload: BytesLike, end: int) -> None:
    """A record whose CRC is right and whose length is not: another release's, or our own bug."""
    if len(payload) != end:
        raise StorageError(f"a journal record has {len(payload)} bytes where {end} are due")
