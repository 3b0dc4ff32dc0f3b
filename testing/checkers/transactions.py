"""Whether transactions were atomic, and commits of groups kept: what clients saw, as plain values.

That no aborted record is read is judged as other records are: a transaction that was certainly not
committed is a send that has failed (`check`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import Outcome, Send, Value


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction, as its producer knows it."""

    client: str
    started: float
    ended: float = 0.0
    outcome: Outcome = Outcome.FAIL
    """OK: its commit was acknowledged. FAIL: nobody has asked for one."""
    sends: list[Send] = field(default_factory=list)
    """Those that were acknowledged, where it was committed; their own outcomes do not count."""
    commits: list[Commit] = field(default_factory=list)


class Commit(NamedTuple):
    """How far a group has read of a partition, as it has said."""

    group: str
    partition: TopicPartition
    offset: Offset
    ended: float
    """When it was acknowledged."""


class Fetched(NamedTuple):
    """How far it had, as it was told."""

    group: str
    partition: TopicPartition
    offset: Offset
    started: float
    """When it was asked for."""


def sends(transactions: Sequence[Transaction]) -> Iterator[Send]:
    """All of them, with the outcomes of their transactions."""
    for transaction in transactions:
        for send in transaction.sends:
            yield Send(
                client=send.client,
                partition=send.partition,
                values=send.values,
                key=send.key,
                started=send.started,
                # What is told of a record is told once its transaction is.
                ended=transaction.ended,
                outcome=transaction.outcome,
                offsets=send.offsets if transaction.outcome is Outcome.OK else (),
            )


def torn(
    transactions: Sequence[Transaction],
    readable: Mapping[TopicPartition, Collection[Value]],
    committed: Mapping[tuple[str, TopicPartition], Offset],
) -> Iterator[Anomaly]:
    """Transactions of which a part counts in the end, and another part does not.

    `readable`: what readers of committed records get; `committed`: how far each group is, which
    never goes back.
    """
    for transaction in transactions:
        there, missing = list[Value](), list[Value]()
        where = None
        for send in transaction.sends:
            where = send.partition
            found = readable.get(where, ())
            for value in send.values:
                (there if value in found else missing).append(value)
        has_happened = transaction.outcome is Outcome.OK or bool(there)
        if where is not None and has_happened and missing:
            what = f"of a transaction of {transaction.client} there is {there}, and not {missing}"
            yield Anomaly(Kind.TORN_TRANSACTION, where, what)
        for group, partition, offset, _ in transaction.commits if has_happened else ():
            if committed.get((group, partition), Offset(-1)) < offset:
                what = f"{there} is there, and {group} is not at {offset}"
                yield Anomaly(Kind.TORN_TRANSACTION, partition, what)


def inputs(
    outputs: Mapping[TopicPartition, Collection[Value]],
    sources: Mapping[TopicPartition, Collection[Offset]],
    done: Mapping[TopicPartition, Offset],
) -> Iterator[Anomaly]:
    """Whether each input was taken once, where inputs are read, and what they come to written, in
    transactions.

    `outputs`: values that name their input, as `partition@offset#attempt`; `sources`: the offsets
    that have a record; `done`: below that the group has read everything.
    """
    counts = Counter(
        str(value).partition("#")[0] for values in outputs.values() for value in values
    )
    for partition, offsets in sources.items():
        for offset in offsets:
            count = counts[f"{partition}@{offset}"]
            if offset < done.get(partition, 0) and not count:
                what = f"the input at {offset} was committed as read, and has no output"
                yield Anomaly(Kind.LOST_INPUT, partition, what)
            elif count > 1:
                what = f"the input at {offset} has {count} outputs"
                yield Anomaly(Kind.REPEATED_INPUT, partition, what)
            elif count and offset >= done.get(partition, 0):
                what = f"the input at {offset} has an output, and was not committed as read"
                yield Anomaly(Kind.TORN_TRANSACTION, partition, what)


def commits(acknowledged: Sequence[Commit], fetched: Sequence[Fetched]) -> Iterator[Anomaly]:
    """Whether commits, of which each is higher than those before it, are kept and never go back."""
    by_place = defaultdict[tuple[str, TopicPartition], list[tuple[float, Offset]]](list)
    for commit in acknowledged:
        by_place[commit.group, commit.partition].append((commit.ended, commit.offset))
    for known in by_place.values():
        known.sort()
    for answer in fetched:
        least = max(
            (
                offset
                for ended, offset in by_place[answer.group, answer.partition]
                if ended < answer.started
            ),
            default=Offset(-1),
        )
        if answer.offset < least:
            what = f"{answer.group} was told {answer.offset} after {least} had been acknowledged"
            yield Anomaly(Kind.LOST_COMMIT, answer.partition, what)


class Keyed(NamedTuple):
    """A record of a compacted partition."""

    offset: Offset
    key: str
    value: Value


def compacted(
    partition: TopicPartition, seen: Collection[Keyed], at_the_end: Sequence[Keyed]
) -> Iterator[Anomaly]:
    """Whether a compacted partition, read from its start to its end, has the last of each key.

    `seen`: all that any reader of committed records has got from it at any time.
    """
    last: dict[str, Keyed] = {}
    for record in sorted({*seen, *at_the_end}, key=lambda each: each.offset):
        last[record.key] = record
    kept = {record.key: record for record in at_the_end}
    for key, record in last.items():
        if kept.get(key) != record:
            what = f"the last of {key!r} was {record}, and is {kept.get(key)}"
            yield Anomaly(Kind.LOST_WRITE, partition, what, record.value)


class Scan(NamedTuple):
    """The last record of each key that a reader found, from the start of a partition to its end."""

    partition: TopicPartition
    started: float
    last: Mapping[str, Keyed]


def scanned(scan: Scan, seen: Collection[Keyed]) -> Iterator[Anomaly]:
    """Whether it found at least what had been `seen` there before it began, or what came later."""
    for record in seen:
        found = scan.last.get(record.key)
        if found is None or found.offset < record.offset:
            what = f"{record} was there, and then only {found}"
            yield Anomaly(Kind.LOST_WRITE, scan.partition, what, record.value)
