"""All that a history says about one partition, put together."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidemark.protocol.types import NO_OFFSET, Offset, TopicPartition
from tidemark.testing.checkers.history import History, Outcome, Polled, Send, Value, Watermark


@dataclass(frozen=True, slots=True)
class PolledRun:
    """What one poll gave of one partition, never empty."""

    client: str
    started: float
    ended: float
    records: list[Polled]
    is_repositioned: bool


@dataclass(slots=True)
class PartitionView:
    """One partition's share of a history."""

    partition: TopicPartition
    sends: list[Send] = field(default_factory=list)
    runs: list[PolledRun] = field(default_factory=list)
    watermarks: list[Watermark] = field(default_factory=list)
    values_at: defaultdict[Offset, set[Value]] = field(default_factory=lambda: defaultdict(set))
    """What was seen at each offset, by polls and in acknowledgements."""
    offsets_of: defaultdict[Value, set[Offset]] = field(default_factory=lambda: defaultdict(set))
    polled: set[Value] = field(default_factory=set)
    polled_last: Offset = NO_OFFSET
    """The highest offset that anybody polled."""

    def add_send(self, send: Send) -> None:
        self.sends.append(send)
        for value, offset in acknowledged(send):
            self._see(offset, value)

    def add_run(self, run: PolledRun) -> None:
        self.runs.append(run)
        for _, offset, value in run.records:
            self._see(offset, value)
            self.polled.add(value)
            self.polled_last = max(self.polled_last, offset)

    def _see(self, offset: Offset, value: Value) -> None:
        self.values_at[offset].add(value)
        self.offsets_of[value].add(offset)

    def ranks(self) -> dict[Offset, int]:
        """Each offset's place among those where a record is known to be."""
        return {offset: rank for rank, offset in enumerate(sorted(self.values_at))}


def acknowledged(send: Send) -> Iterator[tuple[Value, Offset]]:
    """The values whose offsets the producer was told."""
    if send.outcome is Outcome.OK:
        yield from zip(send.values, send.offsets)


def views(history: History) -> list[PartitionView]:
    """One view for each partition that occurs, in their order."""
    found: dict[TopicPartition, PartitionView] = {}

    def view(partition: TopicPartition) -> PartitionView:
        return found.setdefault(partition, PartitionView(partition))

    for send in history.sends:
        view(send.partition).add_send(send)
    for poll in history.polls:
        parts: defaultdict[TopicPartition, list[Polled]] = defaultdict(list)
        for record in poll.records:
            parts[record.partition].append(record)
        for partition, records in parts.items():
            view(partition).add_run(
                PolledRun(poll.client, poll.started, poll.ended, records, poll.is_repositioned)
            )
    for watermark in history.watermarks:
        view(watermark.partition).watermarks.append(watermark)
    return [found[partition] for partition in sorted(found)]
