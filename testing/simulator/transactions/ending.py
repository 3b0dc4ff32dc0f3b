"""What is judged of transactions and groups once all of it is over and was read to the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import check
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import History, Value
from tidemark.testing.checkers.transactions import (
    commits,
    compacted,
    inputs,
    scanned,
    sends,
    torn,
)
from tidemark.testing.simulator.transactions.clients import TRANSFORMERS

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.play import Play


def judge_all(play: Play, sources: Mapping[TopicPartition, Sequence[Offset]]) -> Iterator[Anomaly]:
    """`sources`: the offsets at which the input topic has records."""
    of_words = History(polls=[p for p in play.committed.polls if _is_of_words(play, p.records)])
    readable = _readable(play)
    of_words.sends = sorted(
        (send for send in sends(play.transactions) if send.partition in play.places.words),
        key=lambda send: send.started,
    )
    of_words.sends = play.deletions.without(of_words)
    yield from check(of_words)
    yield from torn(play.transactions, readable, play.last_offsets)
    done = {
        partition: offset
        for (group, partition), offset in play.last_offsets.items()
        if group == TRANSFORMERS
    }
    outputs = {
        partition: [record.value for record in play.last_reader.keyed[partition]]
        for partition in play.places.words
    }
    for partition, found in outputs.items():
        found += play.deletions.given_up(partition) - {*found}
    yield from inputs(outputs, sources, done)
    yield from commits(play.commits, play.fetched)
    yield from _judge_table(play)
    yield from _judge_uncommitted(play)


def _is_of_words(play: Play, records: Sequence[tuple[TopicPartition, Offset, Value]]) -> bool:
    return records[0][0] in play.places.words


def _readable(play: Play) -> dict[TopicPartition, set[Value]]:
    """What readers of committed records have got at any time. Where a log is compacted, or
    records are deleted, none of them may have been in time for it: there, what the log had counts,
    too."""
    readers = (play.committed_reader, play.last_reader)
    readable: dict[TopicPartition, set[Value]] = {
        partition: {record.value for reader in readers for record in reader.keyed[partition]}
        for partition in (*play.places.words, *play.places.table)
    }
    for partition in play.places.table:
        readable[partition] |= play.judge.values(play.places.key(partition))
    for partition in play.places.words:
        readable[partition] |= play.deletions.given_up(partition)
    return readable


def _judge_table(play: Play) -> Iterator[Anomaly]:
    for partition in play.places.table:
        seen = play.committed_reader.keyed[partition]
        yield from compacted(partition, seen, play.last_reader.keyed[partition])
    seen_at = play.committed_reader.seen_at
    for each in play.scans:
        seen = play.committed_reader.keyed[each.partition]
        before = [r for r in seen if seen_at[each.partition, r.offset] < each.started]
        yield from scanned(each, before)


def _judge_uncommitted(play: Play) -> Iterator[Anomaly]:
    """Who reads all that is there finds at each offset what others find."""
    for partition in (*play.places.words, *play.places.table):
        everything: dict[Offset, Value] = {}
        records = [*play.reader_of_all.keyed[partition], *play.last_reader.keyed[partition]]
        for record in records:
            if everything.setdefault(record.offset, record.value) != record.value:
                what = f"{record} and {everything[record.offset]!r}"
                yield Anomaly(Kind.INCONSISTENT_OFFSETS, partition, what)
