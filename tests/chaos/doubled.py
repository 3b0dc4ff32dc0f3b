"""Which records librdkafka has doubled by itself, as it says that it does.

When a message times out (`message.timeout.ms`), an idempotent producer begins a new epoch for all
of its partitions, and sends what it has not been told of again, under that epoch: no broker can
tell that it is the same record (librdkafka#4953, where its maintainers say so). A record counts as
that only if a message of its producer timed out while it was under way, and if each of its copies
has a producer epoch of its own. Two of the same epoch are the broker's fault, whatever timed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.chaos.workload.stream import TimeOut
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import Anomaly, History, Kind, Send
from tidemark.testing.checkers.history import Value

ProducersOf = Callable[[TopicPartition], Mapping[Offset, tuple[int, int]]]
"""By offset: the id and the epoch of the producer that wrote the record."""


def producers_of(
    data_dirs: Iterable[Path], partition: TopicPartition
) -> dict[Offset, tuple[int, int]]:
    """As it lies on the disks of the brokers that hold the partition."""
    found: dict[Offset, tuple[int, int]] = {}
    for data_dir in data_dirs:
        for path in sorted((data_dir / str(partition)).glob("*.log")):
            for _, header in iter_headers(path.read_bytes()):
                producer = header.producer_id, header.producer_epoch
                for offset in range(header.base_offset, header.next_offset):
                    found[Offset(offset)] = producer
    return found


def by_librdkafka(
    anomalies: Iterable[Anomaly],
    history: History,
    timeouts: Sequence[TimeOut],
    producers: ProducersOf,
) -> list[Anomaly]:
    """Those of the anomalies that are its doing."""
    duplicates = [each for each in anomalies if each.kind is Kind.DUPLICATE]
    if not duplicates or not timeouts:
        return []
    sends = {value: send for send in history.sends for value in send.values}
    offsets = _offsets(history)
    written = {at: producers(at) for at in {each.partition for each in duplicates}}
    return [
        each
        for each in duplicates
        if each.value in sends
        and _was_under_way(sends[each.value], timeouts)
        and _are_of_different_epochs(offsets[each.partition, each.value], written[each.partition])
    ]


def _offsets(history: History) -> dict[tuple[TopicPartition, Value], set[Offset]]:
    found: dict[tuple[TopicPartition, Value], set[Offset]] = {}
    for poll in history.polls:
        for record in poll.records:
            found.setdefault((record.partition, record.value), set()).add(record.offset)
    return found


def _was_under_way(send: Send, timeouts: Iterable[TimeOut]) -> bool:
    return any(
        client == send.client and send.started <= at <= send.ended for client, at in timeouts
    )


def _are_of_different_epochs(
    offsets: Iterable[Offset], written: Mapping[Offset, tuple[int, int]]
) -> bool:
    copies = [written.get(offset) for offset in offsets]
    return None not in copies and len(set(copies)) == len(copies)
