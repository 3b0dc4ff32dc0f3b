"""Whether each client saw a partition in the partition's order."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tidemark.protocol.types import NO_OFFSET, Offset
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import Value
from tidemark.testing.checkers.partition_view import PartitionView, PolledRun


def sends(view: PartitionView) -> Iterator[Anomaly]:
    """Whether each producer's records got ascending offsets, within a send and across sends."""
    lasts: defaultdict[str, Offset] = defaultdict(lambda: NO_OFFSET)
    for send in view.sends:
        if not send.offsets:
            continue
        for before, after in pairwise(send.offsets):
            if after <= before:
                what = f"{send.client} sent one batch to {before} and then {after}"
                yield Anomaly(Kind.INT_NONMONOTONIC_SEND, view.partition, what)
        if send.offsets[0] <= lasts[send.client]:
            what = f"{send.client} got {send.offsets[0]} after {lasts[send.client]}"
            yield Anomaly(Kind.NONMONOTONIC_SEND, view.partition, what)
        lasts[send.client] = send.offsets[-1]


def polls(view: PartitionView, *, may_jump: bool) -> Iterator[Anomaly]:
    """Whether each consumer got records in order and without a gap.

    A gap is a record known to be between two that a consumer got one after the other; that an
    offset has no record is none. With `may_jump` (a group's members, which are given partitions
    and lose them) only what happens within a poll is judged.
    """
    ranks = view.ranks()
    lasts: dict[str, Offset] = {}
    for run in view.runs:
        for before, after in pairwise(record.offset for record in run.records):
            yield from _step(view, run, ranks, before, after, within=True)
        last = lasts.get(run.client)
        if last is not None and not may_jump and not run.is_repositioned:
            yield from _step(view, run, ranks, last, run.records[0].offset, within=False)
        lasts[run.client] = run.records[-1].offset


def _step(
    view: PartitionView,
    run: PolledRun,
    ranks: dict[Offset, int],
    before: Offset,
    after: Offset,
    *,
    within: bool,
) -> Iterator[Anomaly]:
    if after <= before:
        kind = Kind.INT_NONMONOTONIC_POLL if within else Kind.NONMONOTONIC_POLL
        yield Anomaly(kind, view.partition, f"{run.client} polled {after} after {before}")
    elif ranks[after] > ranks[before] + 1:
        kind = Kind.INT_POLL_SKIP if within else Kind.POLL_SKIP
        skipped = ranks[after] - ranks[before] - 1
        what = f"{run.client} polled {after} after {before}, which leaves out {skipped}"
        yield Anomaly(kind, view.partition, what)


def keys(view: PartitionView) -> Iterator[Anomaly]:
    """Whether what one producer sent for one key lies in the order in which it was sent.

    Other than `sends`, this counts the records whose sends were never acknowledged.
    """
    lasts: dict[tuple[str, str], tuple[Offset, Value]] = {}
    for send in view.sends:
        if send.key is None:
            continue
        owner = (send.client, send.key)
        for value in send.values:
            offsets = view.offsets_of.get(value)
            if not offsets:
                continue
            offset = min(offsets)
            if owner in lasts and offset < lasts[owner][0]:
                before, earlier = lasts[owner]
                what = f"{send.client} sent {earlier!r} ({before}) before {value!r} ({offset})"
                yield Anomaly(Kind.KEY_ORDER, view.partition, what)
            lasts[owner] = (offset, value)
