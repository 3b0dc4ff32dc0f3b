"""Blocks are known by a secret of their directory: what clients send does not look like one."""

from tests.partitions.storage.journal.node import Node, all_but_the_unjournaled, new_node
from tests.partitions.storage.journal.records import KEY
from tidemark.partitions.storage.journal import blocks, records
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES, Lsn
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.testing.memory_files import MemoryFiles

_LSN = Lsn(1 << 40)


def forged(state: StateDb) -> bytes:
    """A block that says that the journal was synced far beyond its end, made of what clients are
    told."""
    parts = blocks.encode(state.directory_id, _LSN, Lsn(_LSN + 1), [])
    return b"".join(map(bytes, parts))[:64]


def batch_with_a_page_of(forgery: bytes, node: Node) -> bytes:
    """A batch that has it where a page of the journal begins, if nothing else is in its block."""
    replica, at = node.replicas[KEY], 0
    before = blocks.block_bytes([records.batches(KEY, b"")])
    for padding in range(2 * PAGE_BYTES):
        value = bytes(padding) + forgery + bytes(PAGE_BYTES)
        record = Record(timestamp_ms=0, key=None, value=value)
        data = encode_batch([record], base_offset=replica.log.end_offset, epoch=replica.epoch)
        at = before + data.index(forgery)
        if at % PAGE_BYTES == 0:
            return data
    raise AssertionError(f"it is at byte {at}")


def test_what_a_client_has_sent_is_no_block_whatever_it_looks_like() -> None:
    node = new_node()
    data = batch_with_a_page_of(forged(node.state), node)
    node.replicas[KEY].log.append(bytearray(data))
    node.staged.append(records.batches(KEY, data))
    node.sync()
    expected = all_but_the_unjournaled(node)
    after = node.killed()
    assert after.report.damage == ()
    assert all_but_the_unjournaled(after) == expected


def test_a_new_directory_has_a_secret_of_its_own() -> None:
    one, other = StateDb.open(":memory:"), StateDb.open(":memory:")
    assert len({one.directory_id, one.journal_owner, other.journal_owner}) == 3


def of_an_earlier_release() -> Node:
    """Its journal's blocks have the directory's id, and it has no secret."""
    state = StateDb.open(":memory:")
    state.set_meta("journal_owner", str(state.directory_id))
    node = Node(MemoryFiles(), state)
    node.create(KEY)
    node.begin_epoch(KEY, 1)
    node.append(KEY, 3)
    node.vote(KEY, 9, 2)
    node.sync()
    with node.state.transaction() as connection:
        connection.execute("DELETE FROM meta WHERE name = 'journal_owner'")
    return node


def test_a_directory_of_an_earlier_release_gets_a_secret_and_loses_nothing() -> None:
    node = of_an_earlier_release()
    expected = all_but_the_unjournaled(node)
    after = node.killed()
    assert after.report.damage == ()
    assert all_but_the_unjournaled(after) == expected
    assert after.state.journal_owner != after.state.directory_id
    after.append(KEY, 2)
    after.sync()
    expected = all_but_the_unjournaled(after)
    again = after.killed()
    assert again.state.journal_owner == after.state.journal_owner
    assert again.report.damage == ()
    assert all_but_the_unjournaled(again) == expected


def test_a_journal_in_which_nothing_was_written_since_it_has_a_secret_is_not_lost() -> None:
    node = of_an_earlier_release()
    expected = all_but_the_unjournaled(node)
    redo(node.files, node.directory, node.state)  # and the start dies right then
    again = node.killed()
    assert again.report.damage == ()
    assert all_but_the_unjournaled(again) == expected
