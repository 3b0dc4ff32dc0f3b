"""Each kind of record says the same after it was written as before."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.journal import records
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

KEY = PartitionKey(UUID(int=1), 2)
epochs = st.integers(-1, 2**31 - 1).map(Epoch)
offsets = st.integers(0, 2**63 - 1).map(Offset)
node_ids = st.integers(0, 2**31 - 1).map(NodeId)
some_ids = st.lists(node_ids, max_size=5).map(tuple)
positions = st.builds(Position, epochs, offsets)
configs = st.builds(Configuration, some_ids, some_ids, st.integers(-1, 2**63 - 1))
epoch_starts = st.builds(EpochStart, epochs, offsets, node_ids, configs)


@given(start=epoch_starts)
def test_an_epoch_start_is_read_as_it_was_written(start: EpochStart) -> None:
    assert records.decode_epoch_start(records.epoch_start(KEY, start).payload) == start


@given(to=positions)
def test_a_truncation_is_read_as_it_was_written(to: Position) -> None:
    assert records.decode_truncate(records.truncate(KEY, to).payload) == to


@given(start=positions, table=st.lists(epoch_starts, max_size=4).map(tuple), data=st.binary())
def test_a_reset_is_read_as_it_was_written(
    start: Position, table: tuple[EpochStart, ...], data: bytes
) -> None:
    assert records.decode_reset(records.reset(KEY, start, table, data).payload) == (
        start,
        table,
        data,
    )


@given(state=st.builds(HardState, epochs, st.none() | node_ids))
def test_a_vote_is_read_as_it_was_written(state: HardState) -> None:
    assert records.decode_hard_state(records.hard_state(KEY, state).payload) == state


@given(offset=offsets)
def test_an_offset_is_read_as_it_was_written(offset: Offset) -> None:
    assert records.decode_log_start(records.log_start(KEY, offset).payload) == (offset, b"")
    moved = records.log_start(KEY, offset, b"of what was below")
    assert records.decode_log_start(moved.payload) == (offset, b"of what was below")
    assert records.decode_synced(records.synced(KEY, offset).payload) == offset


def test_voters_that_nobody_wished_are_written_as_earlier_releases_wrote_them() -> None:
    start = EpochStart(Epoch(1), Offset(2), NodeId(3), Configuration((NodeId(3),)))
    written = "00000001 0000000000000002 00000003 0001 0000 00000003"
    assert bytes(records.epoch_start(KEY, start).payload) == bytes.fromhex(written)
    assert records.decode_epoch_start(bytes.fromhex(written)) == start


def test_a_payload_of_another_length_is_refused() -> None:
    start = EpochStart(Epoch(1), Offset(2), NodeId(3), Configuration((NodeId(3),)))
    payload = bytes(records.epoch_start(KEY, start).payload)
    for wrong in (payload + b"\0", payload[:-1]):
        with pytest.raises(StorageError):
            records.decode_epoch_start(wrong)
    for decode in (records.decode_truncate, records.decode_hard_state, records.decode_log_start):
        with pytest.raises(StorageError):
            decode(b"123")
