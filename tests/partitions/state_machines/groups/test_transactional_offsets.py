"""Offsets in transactions: kept aside until the marker comes, and the same after a restart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.groups.driver import GROUP, NO_DELAY, Coordinator, Waiter
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.reading_back import ReadBack
from tidemark.partitions.state_machines.groups.records import encode_record
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    CommittingProducer,
    GroupState,
    OffsetToCommit,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import ProducerId, TopicPartition

ORDERS = TopicPartition("orders", 0)
A_WEEK_MS = 7 * 24 * 3_600_000

Entry = tuple[LogRecord, ProducerId | None] | tuple[ProducerId, bool]
"""A record, perhaps of a transaction, or a marker."""


class Transactional(Coordinator):
    """One whose log has transactions."""

    def __init__(self, *, holds_writes: bool = False) -> None:
        super().__init__(NO_DELAY, holds_writes=holds_writes)
        self.entries: list[Entry] = []

    def store_one(self) -> None:
        write = self.held[0]
        self.entries += [(record, write.producer_id) for record in write.records]
        super().store_one()

    def commit_in(
        self,
        producer: int,
        offset: int,
        *,
        topic: str = "orders",
        group_id: str = GROUP,
        member_id: str = "",
        generation: int = -1,
    ) -> Waiter:
        return self.ask(
            Commit(
                group_id=group_id,
                generation=generation,
                member_id=member_id,
                offsets={TopicPartition(topic, 0): OffsetToCommit(offset=offset)},
                producer=CommittingProducer(ProducerId(producer), 0),
            )
        )

    def end(self, producer: int, *, is_commit: bool = True) -> None:
        producer_id = ProducerId(producer)
        self.entries.append((producer_id, is_commit))
        self.take(self.shard.end_transaction(producer_id, self.now, is_commit=is_commit))

    def restart(self) -> None:
        found = ReadBack()
        for first, second in self.entries:
            batch = _batch(first, second)
            found.take_batch(batch, read_header(batch), 0)
        self.held.clear()
        self.shard = found.replay().finish(self.settings, self.now)

    @property
    def is_unstable(self) -> bool:
        return self.shard.is_unstable(GROUP, ORDERS)


def _batch(first: LogRecord | ProducerId, second: ProducerId | bool | None) -> bytes:
    """An entry as the log has it."""
    if not isinstance(first, LogRecord):
        return encode_marker(first, 0, Marker(bool(second), 1), timestamp_ms=0)
    key, value = encode_record(first)
    records = [Record(timestamp_ms=0, key=key, value=value)]
    if second is None:
        return encode_batch(records)
    return encode_batch(records, producer_id=second, producer_epoch=0, is_transactional=True)


class TestKeptAside:
    def test_an_offset_counts_when_its_transaction_is_committed_and_not_before(self) -> None:
        groups = Transactional()
        assert groups.committed(groups.commit_in(1, 5)).error is ErrorCode.NONE
        assert (groups.committed_offset(), groups.is_unstable) == (None, True)
        groups.end(1)
        assert (groups.committed_offset(), groups.is_unstable) == (5, False)

    def test_an_aborted_one_leaves_what_was_there(self) -> None:
        groups = Transactional()
        groups.commit(3)
        groups.commit_in(1, 5)
        groups.end(1, is_commit=False)
        assert (groups.committed_offset(), groups.is_unstable) == (3, False)

    def test_one_that_is_on_its_way_to_the_log_makes_offsets_unstable_already(self) -> None:
        """Its member was let in before the rebalance: the next member must not read past it."""
        groups = Transactional(holds_writes=True)
        groups.commit_in(1, 5)
        assert groups.is_unstable
        groups.fail_one(ErrorCode.NOT_COORDINATOR)
        assert not groups.is_unstable

    def test_one_that_is_on_its_way_outside_a_transaction_does_not(self) -> None:
        groups = Transactional(holds_writes=True)
        groups.commit(5)
        assert not groups.is_unstable

    def test_a_marker_is_of_one_producer(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.commit_in(2, 7, topic="other")
        groups.end(2)
        assert (groups.committed_offset(), groups.committed_offset("other")) == (None, 7)
        groups.end(2)
        assert groups.is_unstable, "a second marker changes nothing"

    def test_a_group_of_an_aborted_transaction_alone_is_forgotten(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.end(1, is_commit=False)
        assert groups.shard.describe(GROUP) is None


class TestOfOneKeyTheLastRecordCounts:
    def test_a_commit_outside_is_not_undone_by_a_transaction_before_it(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.commit(9)
        assert not groups.is_unstable
        groups.end(1)
        assert groups.committed_offset() == 9

    def test_nor_is_that_of_a_later_transaction_that_was_decided_first(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.commit_in(2, 9)
        groups.end(2)
        groups.end(1)
        assert groups.committed_offset() == 9

    def test_but_an_aborted_one_supersedes_nothing(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.commit_in(2, 9)
        groups.end(2, is_commit=False)
        groups.end(1)
        assert groups.committed_offset() == 5


class TestWhoMay:
    """KIP-447: the group's generation fences a producer whose member has lost its partitions."""

    def test_a_member_of_the_generation(self) -> None:
        groups = Transactional()
        generation = groups.form("m")
        asked = groups.commit_in(1, 5, member_id="m", generation=generation)
        assert groups.committed(asked).error is ErrorCode.NONE

    def test_not_one_of_an_old_generation(self) -> None:
        groups = Transactional()
        generation = groups.form("m")
        asked = groups.commit_in(1, 5, member_id="m", generation=generation - 1)
        assert groups.committed(asked).error is ErrorCode.ILLEGAL_GENERATION
        assert not groups.is_unstable

    def test_not_a_stranger(self) -> None:
        groups = Transactional()
        generation = groups.form("m")
        asked = groups.commit_in(1, 5, member_id="another", generation=generation)
        assert groups.committed(asked).error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_not_of_a_group_that_is_unknown(self) -> None:
        groups = Transactional()
        asked = groups.commit_in(1, 5, member_id="m", generation=3)
        assert groups.committed(asked).error is ErrorCode.ILLEGAL_GENERATION

    def test_an_old_client_that_names_no_member(self) -> None:
        groups = Transactional()
        groups.form("m")
        assert groups.committed(groups.commit_in(1, 5)).error is ErrorCode.NONE

    def test_a_member_while_the_others_still_join(self) -> None:
        groups = Transactional()
        generation = groups.joined(groups.join(name="m")).generation
        assert groups.state() is GroupState.COMPLETING_REBALANCE
        asked = groups.commit_in(1, 5, member_id="m", generation=generation)
        assert groups.committed(asked).error is ErrorCode.NONE


class TestTime:
    def test_an_offset_that_a_transaction_may_replace_does_not_expire(self) -> None:
        groups = Transactional()
        groups.commit(3)
        groups.commit_in(1, 5)
        groups.advance(A_WEEK_MS)
        groups.take(groups.shard.expire_offsets(groups.now))
        assert groups.committed_offset() == 3
        groups.end(1)
        assert groups.committed_offset() == 5

    def test_nor_does_a_group_that_has_nothing_else(self) -> None:
        groups = Transactional()
        generation = groups.form("m")
        groups.commit_in(1, 5, member_id="m", generation=generation)
        groups.leave("m")
        groups.advance(A_WEEK_MS)
        groups.take(groups.shard.expire_offsets(groups.now))
        groups.end(1)
        assert groups.committed_offset() == 5

    def test_who_deletes_a_group_deletes_them_too(self) -> None:
        groups = Transactional()
        groups.commit(3)
        groups.commit_in(1, 5)
        groups.deleted(groups.delete_group())
        groups.end(1)
        assert groups.committed_offset() is None

    def test_a_deleted_topic_comes_back_without_them(self) -> None:
        groups = Transactional()
        groups.commit_in(1, 5)
        groups.take(groups.shard.forget_topics(frozenset({"orders"}), groups.now))
        groups.end(1)
        assert groups.committed_offset() is None


_PRODUCERS = st.integers(1, 3)
_STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(0, 99)),
    st.tuples(st.just("commit in"), _PRODUCERS, st.integers(0, 99)),
    st.tuples(st.just("end"), _PRODUCERS, st.booleans()),
    st.tuples(st.just("delete")),
)


@given(steps=st.lists(_STEPS, max_size=20), restart_at=st.integers(0, 20))
def test_read_back_at_any_time_it_is_the_same(
    steps: list[tuple[str, ...]], restart_at: int
) -> None:
    lived_through, read_back = Transactional(), Transactional()
    for at, (what, *rest) in enumerate(steps):
        for groups in (lived_through, read_back):
            match what:
                case "commit":
                    groups.commit(*map(int, rest))
                case "commit in":
                    groups.commit_in(*map(int, rest))
                case "end":
                    groups.end(int(rest[0]), is_commit=bool(rest[1]))
                case "delete":
                    groups.delete_offset()
        if at >= restart_at:
            read_back.restart()
        assert read_back.committed_offset() == lived_through.committed_offset()
        assert read_back.is_unstable == lived_through.is_unstable
        listed = [groups.shard.list_groups() for groups in (lived_through, read_back)]
        assert listed[0] == listed[1]
        assert lived_through.committed_offset() == _last_that_counts(lived_through.entries)


def _last_that_counts(entries: list[Entry]) -> int | None:
    """A naive model: of all records, the last one that is in no transaction or a committed one."""
    counts = None
    for at, (first, second) in enumerate(entries):
        if not isinstance(first, LogRecord):
            continue
        decided = [
            bool(is_commit)
            for whose, is_commit in entries[at:]
            if not isinstance(whose, LogRecord) and whose == second
        ]
        if second is None or (decided and decided[0]):
            counts = None if first.value is None else getattr(first.value, "offset", None)
    return counts
