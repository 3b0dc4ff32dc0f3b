"""Each anomaly of transactions and groups in a history that has it, and one that has not."""

from collections.abc import Sequence

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import check
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import History, Outcome, Poll, Polled, Send
from tidemark.testing.checkers.transactions import (
    Commit,
    Fetched,
    Keyed,
    Scan,
    Transaction,
    commits,
    compacted,
    inputs,
    scanned,
    sends,
    torn,
)

ONE, OTHER = TopicPartition("words", 0), TopicPartition("words", 1)
SOURCE = TopicPartition("inputs", 0)


def sent(partition: TopicPartition, value: str, offset: int) -> Send:
    return Send(
        client="ann",
        partition=partition,
        values=(value,),
        started=1,
        ended=2,
        outcome=Outcome.OK,
        offsets=(Offset(offset),),
    )


def transaction(
    *sends: Send, outcome: Outcome = Outcome.OK, commits: Sequence[Commit] = ()
) -> Transaction:
    return Transaction(
        client="ann",
        started=1,
        ended=3,
        outcome=outcome,
        sends=list(sends),
        commits=list(commits),
    )


BOTH = sent(ONE, "a", 0), sent(OTHER, "b", 0)
READ_TO_FIVE = Commit("g", SOURCE, Offset(5), 3)


def kinds(anomalies: Sequence[Anomaly]) -> list[Kind]:
    return [anomaly.kind for anomaly in anomalies]


class TestAtomic:
    def test_all_of_it_or_nothing_is_well(self) -> None:
        assert not [*torn([transaction(*BOTH)], {ONE: {"a"}, OTHER: {"b"}}, {})]
        assert not [*torn([transaction(*BOTH, outcome=Outcome.INFO)], {}, {})]
        assert not [*torn([transaction(*BOTH, outcome=Outcome.FAIL)], {}, {})]

    def test_a_part_of_it_is_not(self) -> None:
        for outcome in Outcome:
            found = [*torn([transaction(*BOTH, outcome=outcome)], {ONE: {"a"}}, {})]
            assert kinds(found) == [Kind.TORN_TRANSACTION]

    def test_nothing_of_what_was_committed_is_not(self) -> None:
        assert kinds([*torn([transaction(*BOTH)], {}, {})]) == [Kind.TORN_TRANSACTION]

    def test_its_offsets_belong_to_it(self) -> None:
        with_offsets = transaction(BOTH[0], outcome=Outcome.INFO, commits=[READ_TO_FIVE])
        readable = {ONE: {"a"}}
        assert not [*torn([with_offsets], readable, {("g", SOURCE): Offset(5)})]
        found = [*torn([with_offsets], readable, {("g", SOURCE): Offset(4)})]
        assert kinds(found) == [Kind.TORN_TRANSACTION]

    def test_a_record_of_one_that_was_not_committed_is_an_aborted_read(self) -> None:
        polled = Poll(client="bob", started=4, ended=5, records=(Polled(ONE, Offset(0), "a"),))
        for outcome, expected in ((Outcome.FAIL, [Kind.ABORTED_READ]), (Outcome.INFO, [])):
            history = History(
                sends=[*sends([transaction(BOTH[0], outcome=outcome)])], polls=[polled]
            )
            assert kinds(check(history)) == expected


SOURCES = {SOURCE: [Offset(0), Offset(1)]}


class TestInputs:
    def test_each_once_is_well(self) -> None:
        outputs = {ONE: ["inputs-0@0#1"], OTHER: ["inputs-0@1#7"]}
        assert not [*inputs(outputs, SOURCES, {SOURCE: Offset(2)})]
        assert not [*inputs({ONE: ["inputs-0@0#1"]}, SOURCES, {SOURCE: Offset(1)})]

    def test_twice_is_not(self) -> None:
        outputs = {ONE: ["inputs-0@0#1"], OTHER: ["inputs-0@0#2"]}
        found = [*inputs(outputs, SOURCES, {SOURCE: Offset(1)})]
        assert kinds(found) == [Kind.REPEATED_INPUT]

    def test_nor_is_an_offset_without_its_output(self) -> None:
        found = [*inputs({ONE: ["inputs-0@0#1"]}, SOURCES, {SOURCE: Offset(2)})]
        assert kinds(found) == [Kind.LOST_INPUT]

    def test_nor_an_output_without_its_offset(self) -> None:
        found = [*inputs({ONE: ["inputs-0@0#1"]}, SOURCES, {})]
        assert kinds(found) == [Kind.TORN_TRANSACTION]


KNOWN = [Commit("g", SOURCE, Offset(3), 1.0), Commit("g", SOURCE, Offset(7), 2.0)]


class TestCommits:
    def test_what_was_acknowledged_is_there_and_may_be_ahead(self) -> None:
        told = [Fetched("g", SOURCE, Offset(offset), 3.0) for offset in (7, 9)]
        assert not [*commits(KNOWN, told)]

    def test_what_was_asked_before_the_acknowledgement_may_be_older(self) -> None:
        assert not [*commits(KNOWN, [Fetched("g", SOURCE, Offset(3), 1.5)])]

    def test_going_back_is_noticed(self) -> None:
        found = [*commits(KNOWN, [Fetched("g", SOURCE, Offset(3), 2.5)])]
        assert kinds(found) == [Kind.LOST_COMMIT]

    def test_so_is_a_commit_that_is_gone(self) -> None:
        found = [*commits(KNOWN, [Fetched("g", SOURCE, Offset(-1), 2.5)])]
        assert kinds(found) == [Kind.LOST_COMMIT]


class TestCompacted:
    FIRST = Keyed(Offset(0), "k", "old")
    LAST = Keyed(Offset(4), "k", "new")

    def test_the_last_of_a_key_is_enough(self) -> None:
        assert not [*compacted(ONE, [self.FIRST, self.LAST], [self.LAST])]

    def test_one_that_is_gone_is_noticed(self) -> None:
        assert kinds([*compacted(ONE, [self.FIRST, self.LAST], [])]) == [Kind.LOST_WRITE]

    def test_so_is_one_that_has_an_older_value(self) -> None:
        found = [*compacted(ONE, [self.FIRST, self.LAST], [self.FIRST])]
        assert kinds(found) == [Kind.LOST_WRITE]

    def test_what_was_seen_before_a_scan_is_in_it_or_was_replaced(self) -> None:
        found = Scan(ONE, 1.0, {"k": self.LAST})
        assert not [*scanned(found, [self.FIRST, self.LAST])]

    def test_a_scan_that_finds_less_than_was_there_is_noticed(self) -> None:
        for last in ({}, {"k": self.FIRST}):
            assert kinds([*scanned(Scan(ONE, 1.0, last), [self.LAST])]) == [Kind.LOST_WRITE]
