"""Where the journal ends after a crash, and how damage is told from a tail that was cut off."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.partitions.storage.journal.node import new_node
from tests.partitions.storage.journal.records import (
    BEGIN,
    FILE_PAGES,
    KEY,
    OTHER,
    PATH,
    note,
    opened,
    payloads,
    read,
)
from tests.partitions.storage.tails import cut, garbled, zeroed
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES, Lsn
from tidemark.partitions.storage.journal.making import STAMP_PAGES
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.testing.memory_files import MemoryFiles

FILE = f"{PATH}/0000.journal"
SYNCED = [note(number, size=100, key=key) for number, key in enumerate([KEY, OTHER, KEY])]
TAIL = [note(3, size=300), note(4, size=PAGE_BYTES), note(5, size=70)]
TAIL_PAGES = [1, 2, 1]
TAIL_AT = BEGIN + len(SYNCED) * PAGE_BYTES


def crashed_disk() -> tuple[MemoryFiles, Lsn]:
    """A disk on which `SYNCED` was synced and `TAIL` was not, and where to read from.

    The file was full of older blocks.
    """
    files = MemoryFiles()
    journal = opened(files)
    for number in range(100, 100 + FILE_PAGES):
        journal.write([note(number, size=200)])
    start = read(files).next_lsn
    journal = opened(files, start)
    for record in SYNCED:
        journal.write([record])
        journal.sync()
    for record in TAIL:
        journal.write([record])
    return files, start


def of_old(tail: bytes, at: int) -> bytes:
    """What an earlier use of the file had written there."""
    files = MemoryFiles()
    journal = opened(files)
    for number in range(100, 100 + FILE_PAGES):
        journal.write([note(number, size=200)])
    old = files.open(FILE).pread(len(tail), TAIL_AT)
    return tail[:at] + old[at:]


def telling_bytes(block_sizes: list[int]) -> Iterator[int]:
    """Every byte of blocks that begin on pages of their own, and some of the zeros behind."""
    at = 0
    for size in block_sizes:
        # Of a payload of thousands of bytes every 50th.
        yield from range(at, at + min(size, 400))
        yield from range(at + 400, at + size, 50)
        at += -(-size // PAGE_BYTES) * PAGE_BYTES
        yield at - 1


@pytest.mark.parametrize("damage", [cut, zeroed, garbled, of_old])
def test_a_torn_tail_ends_the_journal_at_its_last_whole_block(
    damage: Callable[[bytes, int], bytes],
) -> None:
    disk, start = crashed_disk()
    tail = disk.open(FILE).pread(sum(TAIL_PAGES) * PAGE_BYTES, TAIL_AT)
    synced = [bytes(record.payload) for record in SYNCED]
    sizes = [80 + len(record.payload) for record in TAIL]
    file = disk.open(FILE)
    for at in telling_bytes(sizes):
        damaged = damage(tail, at)
        file.truncate(TAIL_AT)
        file.pwrite(damaged, TAIL_AT)
        whole, begin = 0, 0
        for size, pages in zip(sizes, TAIL_PAGES, strict=True):
            if damaged[begin : begin + size] != tail[begin : begin + size]:
                break
            whole += 1
            begin += pages * PAGE_BYTES
        expected = synced + [bytes(record.payload) for record in TAIL[:whole]]
        assert payloads(disk, start) == expected, at


def test_a_block_behind_a_torn_one_is_never_met_again() -> None:
    """1. Two blocks are written, not synced; the crash leaves the second. 2. Redo cuts both.
    3. A new block is written, as long as the first was. The second must not follow it."""
    node = new_node()
    for key in (KEY, OTHER):
        node.append(key)
    node.sync()
    before = {key: node.replicas[key].held() for key in (KEY, OTHER)}
    node.append(KEY, size=70)
    node.write()
    node.append(OTHER, size=70)
    node.write()
    path = "/data/journal/0000.journal"
    files = node.files.after_kill()
    first = node.files.after_kill()  # segments without the two
    node.files = first
    for number in (0, 1):
        log = first.open(f"/data/t7-{number}/{0:020d}.log")
        log.truncate(log.size() // 2)
    torn_at = BEGIN + (node.journal.next_lsn - 3) * PAGE_BYTES
    torn = files.open(path).pread(100, torn_at)
    assert torn[:4] == b"TMJ1"
    first.open(path).pwrite(bytes(100), torn_at)
    after = node.killed()
    assert after.report.cut_bytes > 0
    assert {key: after.replicas[key].held() for key in (KEY, OTHER)} == before
    after.append(KEY, size=70)
    after.sync()
    again = after.killed()
    assert again.held() == after.held()
    assert again.replicas[OTHER].held() == before[OTHER]


# Damage


def flipped(disk: MemoryFiles, byte: int, bit: int) -> MemoryFiles:
    other = disk.after_kill()
    file = other.open(FILE)
    file.pwrite(bytes([file.pread(1, byte)[0] ^ 1 << bit]), byte)
    return other


def synced_disk() -> MemoryFiles:
    files = MemoryFiles()
    journal = opened(files)
    for record in SYNCED:
        journal.write([record])
        journal.sync()
    return files


def test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal() -> None:
    disk = synced_disk()
    header_and_table = 80
    for number, record in enumerate(SYNCED):
        for byte in range(header_and_table + len(record.payload)):
            journal = read(flipped(disk, BEGIN + number * PAGE_BYTES + byte, byte % 8))
            found = list(journal.records())
            assert len(journal.damage) == 1, (number, byte)
            is_payload = byte >= header_and_table
            assert journal.is_torn_apart is not is_payload
            sound = [bytes(r.payload) for r in found if r.is_sound]
            assert sound == [bytes(r.payload) for r in SYNCED if r is not record]
            assert [r.key for r in found if not r.is_sound] == ([record.key] if is_payload else [])


def test_damage_to_what_its_own_write_synced_is_told() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for record in SYNCED:
        journal.write([record], synced=True)
    journal.note_synced()
    assert len(payloads(files)) == len(SYNCED)
    for number in range(len(SYNCED)):
        damaged = read(flipped(files, BEGIN + number * PAGE_BYTES + 10, 0))
        list(damaged.records())
        assert damaged.damage, number


def test_damage_to_the_last_block_of_a_full_file_is_told() -> None:
    files = MemoryFiles()
    journal = opened(files)
    count = FILE_PAGES - STAMP_PAGES
    for number in range(count):
        journal.write([note(number)])
        journal.sync()
    assert len(payloads(files)) == count
    damaged = read(flipped(files, BEGIN + (count - 1) * PAGE_BYTES + 85, 0))
    list(damaged.records())
    assert damaged.damage


def test_a_flipped_bit_in_what_fills_a_page_is_nothing() -> None:
    disk = synced_disk()
    for byte in (3000, PAGE_BYTES + 4095, 3 * PAGE_BYTES + 17, 5 * PAGE_BYTES):
        assert len(payloads(flipped(disk, BEGIN + byte, 3))) == len(SYNCED)


def test_damage_is_told_though_the_next_block_was_torn() -> None:
    disk = synced_disk()
    file = disk.open(FILE)
    file.pwrite(bytes(PAGE_BYTES), BEGIN + PAGE_BYTES)
    file.pwrite(b"\1" * 50, BEGIN + 2 * PAGE_BYTES + 20)
    journal = read(disk)
    assert [bytes(record.payload) for record in journal.records()] == [SYNCED[0].payload]
    assert journal.damage


def test_a_block_that_was_damaged_names_the_partition_and_the_place() -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.write([note(0), note(1, key=OTHER), note(2)])
    journal.sync()
    file = files.open(FILE)
    file.pwrite(b"?", BEGIN + 48 + 3 * 32 + 25)
    found = read(files)
    keys: list[PartitionKey] = [r.key for r in found.records() if not r.is_sound]
    assert keys == [OTHER]
    assert found.damage == [f"{FILE} is corrupt at byte {BEGIN + 48 + 3 * 32 + 20}"]
    assert not found.is_torn_apart


def test_a_flipped_bit_of_the_journal_is_repaired_by_a_checkpoint_or_reported() -> None:
    node = new_node()
    node.append(KEY, size=50)
    node.sync()
    node.checkpoint()
    node.append(KEY, size=50)
    node.append(OTHER, size=50)
    node.sync()
    path = "/data/journal/0000.journal"
    expected = node.held()
    marks = set()
    for byte in range(0, node.files.open(path).size(), 37):
        after = node.killed_with(partial(flip, path=path, byte=byte))
        marks.add(bool(after.report.damage))
        for key in (KEY, OTHER):
            assert after.held()[key] == expected[key] or key in after.report.damaged, byte
    assert marks == {False, True}


def flip(files: MemoryFiles, path: str, byte: int) -> None:
    file = files.open(path)
    file.pwrite(bytes([file.pread(1, byte)[0] ^ 16]), byte)
