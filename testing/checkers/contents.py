"""Whether a partition holds what it should, once, and nothing else."""

from collections.abc import Iterator

from tidemark.protocol.types import Offset
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import Outcome, Send, Value
from tidemark.testing.checkers.partition_view import PartitionView, acknowledged


def missing(view: PartitionView, *, reads_are_final: bool) -> Iterator[Anomaly]:
    """Records that were acknowledged and that nobody polled.

    Behind the last record that anybody polled, that may be lag; so those are anomalies only with
    `reads_are_final`: the readers went on, after the last send, to the end of every partition.
    """
    for send in view.sends:
        if send.outcome is not Outcome.OK:
            continue
        for value, offset in _with_offsets(send):
            if value in view.polled:
                continue
            if offset is not None and offset <= view.polled_last:
                what = f"{value!r} was acknowledged at {offset}; {view.polled_last} was polled"
                yield Anomaly(Kind.LOST_WRITE, view.partition, what)
            elif reads_are_final:
                what = f"{value!r} was acknowledged at {offset} and is not there at the end"
                yield Anomaly(Kind.UNSEEN, view.partition, what)


def _with_offsets(send: Send) -> Iterator[tuple[Value, Offset | None]]:
    if send.offsets:
        yield from zip(send.values, send.offsets)
    else:
        yield from ((value, None) for value in send.values)


def unexpected(view: PartitionView) -> Iterator[Anomaly]:
    """Records that were polled though their send failed, or though there was none."""
    outcomes = {value: send.outcome for send in view.sends for value in send.values}
    for run in view.runs:
        for _, offset, value in run.records:
            outcome = outcomes.get(value)
            if outcome is Outcome.FAIL:
                what = f"{run.client} polled {value!r} at {offset}, whose send had failed"
                yield Anomaly(Kind.ABORTED_READ, view.partition, what)
            elif outcome is None:
                what = f"{run.client} polled {value!r} at {offset}, which nobody sent"
                yield Anomaly(Kind.PHANTOM, view.partition, what)


def ambiguous(view: PartitionView) -> Iterator[Anomaly]:
    """Values at several offsets, and offsets with several values."""
    for value, offsets in view.offsets_of.items():
        if len(offsets) > 1:
            what = f"{value!r} is at offsets {sorted(offsets)}"
            yield Anomaly(Kind.DUPLICATE, view.partition, what, value)
    for offset in sorted(view.values_at):
        values = view.values_at[offset]
        if len(values) > 1:
            what = f"offset {offset} holds {sorted(values, key=repr)!r}"
            yield Anomaly(Kind.INCONSISTENT_OFFSETS, view.partition, what)


def reused(view: PartitionView) -> Iterator[Anomaly]:
    """Offsets that were acknowledged twice."""
    owners: dict[Offset, str] = {}
    for send in view.sends:
        for value, offset in acknowledged(send):
            if offset in owners:
                what = f"{offset} was given to {owners[offset]} and to {value!r} of {send.client}"
                yield Anomaly(Kind.OFFSET_REUSED, view.partition, what)
            owners[offset] = f"{value!r} of {send.client}"
