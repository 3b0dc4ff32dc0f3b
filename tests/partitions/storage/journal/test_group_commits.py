"""The group commit, without a thread, a clock or a disk."""

from collections.abc import Hashable, Sequence
from functools import partial
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.storage.journal.group_commits import CommitGroup, GroupCommits
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.state_db import PartitionKey

KEY = PartitionKey(UUID(int=7), 0)
GONE = OSError(5, "Input/output error")


def record(number: int) -> JournalRecord:
    return JournalRecord(KEY, RecordKind.BATCHES, b"%d" % number)


class FakeSync:
    def __init__(self, subject: Hashable) -> None:
        self.subject = subject

    def begin(self) -> None:
        """Nor does this."""

    def run(self) -> None:
        """Nobody does here."""


class Bench:
    """Whoever writes: it notes what it is handed, and what is told."""

    def __init__(self) -> None:
        self.commits = GroupCommits(self.hand_over)
        self.written = list[CommitGroup]()
        """And being written: the last, where `is_writing`."""
        self.done = list[str]()
        self.ended = 0

    def hand_over(self, group: CommitGroup) -> None:
        self.written.append(group)
        self.done.append(f"write {group.write}")

    def add(self, write: int, syncs: Sequence[FakeSync] = ()) -> None:
        told = partial(self.tell, write)
        group = self.commits.add(write, [record(write)], told, syncs)
        if group is not None:
            self.hand_over(group)

    def tell(self, asked_by: int, write: int) -> None:
        assert asked_by == write, "the newest of a group is told, and of itself"
        self.done.append(f"told {write}")

    def take(self) -> bool:
        """Who writes goes on by itself."""
        group = self.commits.take()
        if group is not None:
            self.hand_over(group)
        return group is not None

    def end(self) -> None:
        """Of what is written, the oldest that has not been told of is."""
        self.ended += 1
        self.commits.written(self.written[self.ended - 1])


def numbers(group: CommitGroup) -> list[int]:
    return [int(bytes(each.payload)) for each in group.records]


def test_what_comes_while_a_group_is_written_is_the_next_group() -> None:
    bench = Bench()
    for write in (1, 2, 3):
        bench.add(write)
    assert [numbers(group) for group in bench.written] == [[1]]
    bench.end()
    assert [numbers(group) for group in bench.written] == [[1], [2, 3]]
    assert (bench.written[1].write, bench.written[1].write_count) == (3, 2)
    assert (bench.commits.durable, bench.commits.newest) == (1, 3)


def test_the_next_group_is_handed_over_before_the_last_is_told_of() -> None:
    bench = Bench()
    bench.add(1)
    bench.add(2)
    bench.end()
    bench.end()
    assert bench.done == ["write 1", "write 2", "told 1", "told 2"]


def test_who_is_told_finds_its_batch_durable_and_may_come_with_another() -> None:
    seen, handed = list[int](), list[CommitGroup]()
    commits = GroupCommits(handed.append)

    def add_another(write: int) -> None:
        seen.append(commits.durable)
        group = commits.add(write + 1, [], seen.append, ())
        assert group is not None, "nothing is being written"
        handed.append(group)

    first = commits.add(1, [], add_another, ())
    assert first is not None
    commits.written(first)
    assert seen == [1]
    assert [group.write for group in handed] == [2]
    assert commits.is_writing


def test_what_a_group_relies_on_is_synced_once_by_its_newest() -> None:
    bench, syncs = Bench(), [FakeSync(subject) for subject in "abab"]
    bench.add(1)
    for write, sync in enumerate(syncs, 2):
        bench.add(write, [sync])
    bench.end()
    assert list(bench.written[1].syncs.values()) == syncs[2:]


def test_who_writes_goes_on_with_what_is_large_before_the_last_is_told_of() -> None:
    bench = Bench()
    bench.add(1)
    bench.add(2, [FakeSync("log")])
    assert bench.take()
    bench.add(3)
    bench.end()
    assert (bench.commits.durable, bench.commits.is_writing) == (1, True), "one after the other"
    bench.end()
    bench.end()
    assert bench.done == ["write 1", "write 2", "told 1", "write 3", "told 2", "told 3"]
    assert not bench.commits.is_writing


def test_a_little_waits_for_what_comes_until_the_last_is_told_of() -> None:
    bench = Bench()
    bench.add(1)
    assert not bench.take()
    bench.add(2)
    assert not bench.take()
    bench.add(3)
    bench.end()
    assert [numbers(group) for group in bench.written] == [[1], [2, 3]]


def test_who_writes_is_given_nothing_more_when_the_disk_has_failed() -> None:
    bench = Bench()
    bench.add(1)
    bench.add(2, [FakeSync("log")])
    bench.commits.fail(GONE)
    assert not bench.take()


def test_nothing_is_told_of_what_was_being_written_when_the_disk_failed() -> None:
    bench = Bench()
    bench.add(1)
    bench.add(2)
    assert bench.commits.fail(GONE)
    bench.end()
    assert bench.done == ["write 1"]
    assert bench.commits.durable == 0


def test_nothing_is_written_after_the_disk_has_failed_and_the_first_error_stays() -> None:
    bench = Bench()
    assert bench.commits.fail(GONE)
    bench.add(1)
    assert not bench.commits.fail(OSError(28, "No space left on device"))
    assert bench.commits.error is GONE
    assert bench.written == []


@given(st.lists(st.sampled_from(["add", "add large", "take", "end", "fail"]), max_size=40))
def test_whatever_comes_when_batches_are_written_once_in_their_order_and_told_when_durable(
    events: list[str],
) -> None:
    bench, added, failed_at = Bench(), 0, None
    for event in events:
        if event.startswith("add"):
            added += 1
            bench.add(added, [FakeSync("log")] * (event == "add large"))
        elif event == "take":
            bench.take()
        elif event == "end" and bench.ended < len(bench.written):
            bench.end()
        elif event == "fail" and failed_at is None:
            bench.commits.fail(GONE)
            failed_at = len(bench.done)
        commits = bench.commits
        assert commits.durable <= commits.newest
        assert commits.is_behind() is (commits.durable < commits.newest)
    written = [number for group in bench.written for number in numbers(group)]
    assert written == [*range(1, len(written) + 1)]
    told = [each for each in bench.done if each.startswith("told")]
    assert told == [f"told {group.write}" for group in bench.written[: len(told)]]
    if failed_at is not None:
        assert len(bench.done) == failed_at
    else:
        assert len(told) == bench.ended
        assert bench.commits.is_writing is (bench.ended < len(bench.written))
        assert bench.commits.is_writing or len(written) == added, "nothing is left behind"
