"""Which records were acknowledged and nobody has read, and on whose disks they lie.

A reader that gets less than was acknowledged may have stood still, or the records are gone: only
the replicas' files tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.chaos.workload.promise import value_of
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import TopicPartition
from tidemark.testing.checkers import History, Outcome
from tidemark.testing.checkers.history import Value


def unread(history: History, data_dirs: Mapping[int, Path]) -> list[str]:
    """A line for each partition of which not all was read; `data_dirs` are by broker."""
    read = {record.value for poll in history.polls for record in poll.records}
    missing: dict[TopicPartition, set[Value]] = {}
    for send in history.sends:
        if send.outcome is Outcome.OK and not read.issuperset(send.values):
            missing.setdefault(send.partition, set()).update(set(send.values) - read)
    return [_told(partition, values, data_dirs) for partition, values in sorted(missing.items())]


def _told(partition: TopicPartition, values: set[Value], data_dirs: Mapping[int, Path]) -> str:
    held = {
        node: values.intersection(_written(path / str(partition)))
        for node, path in data_dirs.items()
    }
    gone = len(values.difference(*held.values()))
    disks = ", ".join(f"{len(some)} on the disk of {node}" for node, some in held.items())
    return f"{partition}: {len(values)} acknowledged and read by nobody: {disks}; {gone} on none"


def _written(directory: Path) -> Iterator[Value]:
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        with suppress(CorruptBatch):  # the end of what is being written to, or of what is damaged
            for at, header in iter_headers(data):
                if not header.is_control:
                    for record in decode_batch(data, header, at):
                        yield value_of((record.value or b"").decode())
