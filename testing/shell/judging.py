"""What is wrong with what the clients of a run saw: as the simulator's transactions are judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import Anomaly, History, Outcome, check
from tidemark.testing.checkers.transactions import Commit, commits, inputs, sends, torn
from tidemark.testing.shell.clients import COPIES, WORDS
from tidemark.testing.shell.members import COPIERS, READERS, Members


def judge(history: History, final: History, members: Members) -> Iterator[Anomaly]:
    """`final`: what was there in the end, read from the beginning."""
    history.sends += sends(members.transactions)
    yield from check(history)
    readable = _values(final)
    sources = {where: offsets for where, offsets in _offsets(final).items() if where.topic == WORDS}
    done = {(fetched.group, fetched.partition): fetched.offset for fetched in members.fetched}
    yield from torn(members.transactions, readable, done)
    copies = {
        where: [value.decode() for value in values]
        for where, values in readable.items()
        if where.topic == COPIES
    }
    read = {
        where: [f"{where}@{offset}" for offset in offsets]
        for where, offsets in members.polled.items()
    }
    for group, outputs in ((COPIERS, copies), (READERS, read)):
        own = {where: offset for (each, where), offset in done.items() if each == group}
        yield from inputs(outputs, sources, own)
    yield from commits([*members.commits, *_committed(members)], members.fetched)


def _committed(members: Members) -> Iterator[Commit]:
    """With transactions: each is acknowledged with its transaction."""
    for transaction in members.transactions:
        if transaction.outcome is Outcome.OK:
            for commit in transaction.commits:
                yield commit._replace(ended=transaction.ended)


def _values(history: History) -> Mapping[TopicPartition, set[bytes]]:
    found = defaultdict[TopicPartition, set[bytes]](set)
    for poll in history.polls:
        for record in poll.records:
            assert isinstance(record.value, bytes)
            found[record.partition].add(record.value)
    return found


def _offsets(history: History) -> Mapping[TopicPartition, set[Offset]]:
    found = defaultdict[TopicPartition, set[Offset]](set)
    for poll in history.polls:
        for record in poll.records:
            found[record.partition].add(record.offset)
    return found
