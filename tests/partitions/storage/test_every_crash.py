"""A crash before every sync of every operation, with every disk that it may leave."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.crashes import Crashes
from tests.partitions.storage.every_crash import EveryWay, every_crash
from tests.partitions.storage.journal.node import (
    ME,
    VOTERS,
    Held,
    Node,
    all_but_the_unjournaled,
    batches,
    copy_of,
    new_node,
    position,
)
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

SETTINGS = LogSettings(segment_bytes=250, index_interval_bytes=60)
DIRECTORY = "/p-0"
Content = tuple[bytes, ...]


def test_every_way_is_taken_once() -> None:
    every, found = EveryWay(), []
    is_more = True
    while is_more:
        every.begin()
        count = every.randrange(3)
        found.append((count, *(every.random() < 0.5 for _ in range(count))))
        is_more = every.next_way()
    assert len(found) == len(set(found)) == 1 + 2 + 4


def test_a_write_may_be_lost_or_torn_and_nothing_else() -> None:
    files = MemoryFiles()
    file = files.create("/f")
    file.pwrite(b"old old old", 0)
    file.sync()
    files.sync_directory("/")
    file.pwrite(b"new new new new", 0)
    found = {disk.open("/f").pread(100, 0) for disk in every_crash(files)}
    assert {b"old old old", b"new new new new", b"old old old\0\0\0\0"} < found
    for content in found:  # some first bytes of the new one, and then the old one
        new = next((at for at in range(15) if content[at:11] == b"old old old"[at:]), 11)
        assert content[:new] == b"new new new new"[:new]


class OneLog:
    """A log, and what it has held since it was last made durable."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.files.make_directory(DIRECTORY)
        self.files.sync_directory("/")
        self.start = Offset(0)
        self.past: list[Content] = [()]
        self.crashes = Crashes(self.files, self.check)
        self.log = self.opened(self.files, Offset(0))

    def opened(self, files: MemoryFiles, recovery_point: Offset) -> Log:
        return Log.open(
            files,
            DIRECTORY,
            SETTINGS,
            start_offset=self.start,
            recovery_point=max(self.start, recovery_point),
        )

    def append(self, count: int = 1, *, epoch: int = 1) -> None:
        for _ in range(count):
            self.log.append(batch(self.log.end_offset, size=20, epoch=epoch))
            self.happened()

    def happened(self) -> None:
        self.past.append(tuple(batches(self.log)))

    def sync(self) -> None:
        self.log.sync()
        self.past = self.past[-1:]

    def truncate(self, offset: int) -> None:
        """What is cut off may be there until the cut is durable, which it is when it returns."""
        kept = tuple(data for data in batches(self.log) if _offset(data) < offset)
        self.past.append(kept)
        self.log.truncate(Offset(offset))
        self.past = [kept]

    def delete_before(self, offset: int) -> None:
        """As its owner does: first the start is recorded, then the segments go."""
        self.start = Offset(offset)
        self.past = [self.since_start(content) for content in self.past]
        self.log.delete_before(self.start).run()

    def since_start(self, content: Content) -> Content:
        return tuple(data for data in content if _offset(data) >= self.start)

    def check(self, disk: MemoryFiles) -> None:
        """What nobody has cut since the last sync is there, and what follows it was written."""
        durable = self.past[0]
        for content in self.past:
            durable = durable[: _common(durable, content)]
        log = self.opened(disk, Offset(self.start + len(durable)))
        found = self.since_start(tuple(batches(log)))
        assert found[: len(durable)] == durable
        assert any(found == content[: len(found)] for content in self.past), found
        # And it goes on from there: what is appended and synced now survives the next crash.
        log.append(batch(log.end_offset, size=20, epoch=9))
        end = log.sync()
        again = self.opened(disk.after_crash(Random(len(found))), end)
        assert self.since_start(tuple(batches(again)))[:-1] == found


def _offset(data: bytes) -> int:
    return int.from_bytes(data[:8], "big")


def _common(one: Content, other: Content) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(map(len, (one, other)))
    )


def create_and_roll(log: OneLog) -> None:
    for _ in range(5):
        log.append(2)
        log.sync()


def roll_twice_before_a_sync(log: OneLog) -> None:
    log.append(7)
    log.sync()


def truncate_and_write_over(log: OneLog) -> None:
    log.append(6)
    log.sync()
    log.truncate(4)
    log.append(2, epoch=2)
    log.crashes.now()
    log.sync()
    log.truncate(1)
    log.append(2, epoch=3)
    log.sync()


def truncate_what_was_never_synced(log: OneLog) -> None:
    log.append(2)
    log.sync()
    log.append(2)
    log.truncate(3)
    log.append(1, epoch=2)
    log.sync()


def remove_segments(log: OneLog) -> None:
    log.append(9)
    log.sync()
    log.delete_before(5)
    log.append(2)
    log.sync()
    log.delete_before(10)


def close_and_open_again(log: OneLog) -> None:
    log.append(5)
    log.log.close()
    log.past = log.past[-1:]
    log.crashes.now()
    log.log = log.opened(log.files, Offset(5))
    log.append(2)
    log.sync()


@pytest.mark.parametrize(
    ("story", "points_min", "disks_min"),
    [
        (create_and_roll, 10, 100),
        (roll_twice_before_a_sync, 5, 200),
        (truncate_and_write_over, 8, 100),
        (truncate_what_was_never_synced, 5, 30),
        (remove_segments, 8, 100),
        (close_and_open_again, 8, 100),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_log_survives_every_crash(
    story: Callable[[OneLog], None], points_min: int, disks_min: int
) -> None:
    log = OneLog()
    story(log)
    log.crashes.now()
    assert log.crashes.points >= points_min
    assert log.crashes.disks >= disks_min


class OneBroker:
    """Two journaled partitions, and what they have held since the journal was last synced."""

    def __init__(self) -> None:
        self.node = new_node()
        self.past: list[dict[PartitionKey, Held]] = [all_but_the_unjournaled(self.node)]
        self.crashes = Crashes(self.node.files, self.check)

    def did(self, *, is_durable: bool = False) -> None:
        self.past.append(all_but_the_unjournaled(self.node))
        if is_durable:
            self.past = self.past[-1:]

    def append(self, key: PartitionKey, *, size: int = 40) -> None:
        self.node.append(key, size=size)
        self.did()

    def sync(self) -> None:
        self.node.sync()
        self.did(is_durable=True)

    def checkpoint(self) -> None:
        self.node.checkpoint()
        self.did(is_durable=True)

    def check(self, disk: MemoryFiles) -> None:
        """One moment since the last sync, but for batches that the segments have beyond it."""
        state = copy_of(self.node.state)
        after = Node(disk, state, "next boot")
        assert after.report.damage == ()
        held = all_but_the_unjournaled(after)
        assert any(self.is_of(held, moment) for moment in range(len(self.past))), held
        if self.crashes.disks % 4 == 0:  # and redo, done again, comes to the same
            again = Node(disk.after_crash(Random(1)), copy_of(state), "the one after that")
            assert all_but_the_unjournaled(again) == held

    def is_of(self, held: dict[PartitionKey, Held], moment: int) -> bool:
        for key, now in held.items():
            then = self.past[moment][key]
            later = [past[key].batches for past in self.past[moment:]]
            if (
                now._replace(batches=then.batches) != then
                or now.batches[: len(then.batches)] != then.batches
                or not any(now.batches == content[: len(now.batches)] for content in later)
            ):
                return False
        return True


def write_and_checkpoint(broker: OneBroker) -> None:
    broker.append(KEY)
    broker.sync()
    broker.append(OTHER, size=300)
    broker.checkpoint()
    broker.append(KEY)
    broker.sync()


def checkpoint_with_a_roll_before_it(broker: OneBroker) -> None:
    for _ in range(3):
        broker.append(KEY, size=400)
    broker.sync()
    broker.checkpoint()
    broker.append(KEY, size=400)
    broker.checkpoint()


def use_the_journals_files_again(broker: OneBroker) -> None:
    """Twice the same pages: what is torn there is torn over older blocks."""
    for key in (KEY, OTHER, KEY):
        for _ in range(2):
            broker.append(key, size=5000)
            broker.node.write()
        broker.checkpoint()


def truncate_over_the_journal(broker: OneBroker) -> None:
    for _ in range(3):
        broker.append(KEY)
    broker.sync()
    broker.checkpoint()
    broker.node.vote(KEY, 3, 2)
    broker.did()
    before = broker.past[-1][KEY]
    cut = before._replace(
        batches=before.batches[:1],
        epochs=tuple(row for row in before.epochs if row.position <= position(1, 1)),
    )
    broker.past.append({**broker.past[-1], KEY: cut})
    broker.node.truncate(KEY, position(1, 1))
    broker.did(is_durable=True)
    broker.node.begin_epoch(KEY, 3)
    broker.did()
    broker.append(KEY)
    broker.sync()


def reset_over_the_journal(broker: OneBroker) -> None:
    broker.append(KEY)
    broker.sync()
    table = (EpochStart(Epoch(4), Offset(3), ME, VOTERS),)
    emptied = broker.past[-1][KEY]._replace(epochs=table, start=Offset(7), batches=())
    broker.past.append({**broker.past[-1], KEY: emptied})
    broker.node.reset(KEY, position(4, 7), table)
    broker.did(is_durable=True)
    broker.append(KEY)
    broker.sync()
    broker.checkpoint()


@pytest.mark.parametrize(
    ("story", "points_min", "disks_min"),
    [
        (write_and_checkpoint, 5, 50),
        (checkpoint_with_a_roll_before_it, 8, 100),
        (use_the_journals_files_again, 12, 100),
        (truncate_over_the_journal, 6, 50),
        (reset_over_the_journal, 5, 50),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broker_survives_every_crash(
    story: Callable[[OneBroker], None], points_min: int, disks_min: int
) -> None:
    broker = OneBroker()
    story(broker)
    broker.crashes.now()
    assert broker.crashes.points >= points_min
    assert broker.crashes.disks >= disks_min


ROOMY = LogSettings(segment_bytes=10_000)


def reopened_after_a_kill(disk: MemoryFiles, recovery_point: Offset) -> Log:
    """The page cache is as it was, and on the disk is what had been synced."""
    return Log.open(disk, DIRECTORY, ROOMY, recovery_point=recovery_point)


def holds_after_every_crash(disk: MemoryFiles, end_offset: Offset) -> bool:
    return all(
        reopened_after_a_kill(crashed, end_offset).end_offset == end_offset
        for crashed in every_crash(disk)
    )


def test_a_segment_that_a_start_removed_does_not_come_back_in_what_was_synced_since() -> None:
    """That start died before the removal was on the disk, and the next one had nothing to do."""
    log = OneLog()
    log.append(2)
    log.sync()
    log.log._roll()
    log.files.open(f"{DIRECTORY}/{2:020}.log").pwrite(b"torn", 0)
    log.files.sync_directory(DIRECTORY)
    dying = log.files.after_kill()

    def die(path: str) -> None:
        raise KeyboardInterrupt

    dying.sync_directory = die  # type: ignore[method-assign]  # the process ends there
    with pytest.raises(KeyboardInterrupt):
        reopened_after_a_kill(dying, Offset(2))
    killed = dying.after_kill()
    again = reopened_after_a_kill(killed, Offset(2))
    again.append(batch(Offset(2), size=20))
    assert holds_after_every_crash(killed, again.sync())
    again.append(batch(Offset(3), size=20))
    before = len(killed.synced_paths)
    again.sync()
    assert DIRECTORY not in killed.synced_paths[before:], "once is enough"
