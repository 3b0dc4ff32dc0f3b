"""Whether what was known at one time still held later."""

from collections.abc import Iterator
from operator import attrgetter

from tidemark.protocol.types import NO_OFFSET, Epoch, Offset
from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import Send, Watermark
from tidemark.testing.checkers.partition_view import PartitionView


def sends(view: PartitionView) -> Iterator[Anomaly]:
    """Whether each record lies behind all that were known to be there when its send began.

    A record is known once it was acknowledged, or polled. This is what makes a partition's log
    linearizable to those who append.
    """
    known = [(send.ended, send.offsets[-1]) for send in view.sends if send.offsets]
    known += [(run.ended, run.records[-1].offset) for run in view.runs]
    known.sort()
    at, highest = 0, NO_OFFSET
    for send in sorted(view.sends, key=attrgetter("started")):
        while at < len(known) and known[at][0] < send.started:
            highest = max(highest, known[at][1])
            at += 1
        yield from _behind(view, send, highest)


def _behind(view: PartitionView, send: Send, highest: Offset) -> Iterator[Anomaly]:
    if send.offsets and send.offsets[0] <= highest:
        what = (
            f"{send.client} began to send {send.values[0]!r} at {send.started:.3f}, when "
            f"{highest} was known, and got {send.offsets[0]}"
        )
        yield Anomaly(Kind.REAL_TIME_ORDER, view.partition, what)


def watermarks(view: PartitionView) -> Iterator[Anomaly]:
    """Whether the end of what may be read ever went back.

    Within an epoch it must not go back in time. A leader that does not know yet that it was
    replaced may go on to tell its own, so across epochs it is not time that counts: whatever
    was readable in an epoch is readable in every later one.
    """
    yield from _within_epochs(view)
    yield from _across_epochs(view)


def _within_epochs(view: PartitionView) -> Iterator[Anomaly]:
    ended = sorted(view.watermarks, key=attrgetter("ended"))
    at = 0
    highest: dict[Epoch, Offset] = {}
    for later in sorted(view.watermarks, key=attrgetter("started")):
        while at < len(ended) and ended[at].ended < later.started:
            known = ended[at]
            highest[known.epoch] = max(highest.get(known.epoch, NO_OFFSET), known.offset)
            at += 1
        if later.offset < highest.get(later.epoch, NO_OFFSET):
            yield _regression(view, later, highest[later.epoch], later.epoch)


def _across_epochs(view: PartitionView) -> Iterator[Anomaly]:
    lowest: dict[Epoch, Watermark] = {}
    highest: dict[Epoch, Offset] = {}
    for watermark in view.watermarks:
        epoch = watermark.epoch
        if epoch not in lowest or watermark.offset < lowest[epoch].offset:
            lowest[epoch] = watermark
        highest[epoch] = max(highest.get(epoch, NO_OFFSET), watermark.offset)
    before, of_epoch = NO_OFFSET, Epoch(-1)
    for epoch in sorted(lowest):
        if lowest[epoch].offset < before:
            yield _regression(view, lowest[epoch], before, of_epoch)
        if highest[epoch] > before:
            before, of_epoch = highest[epoch], epoch


def _regression(view: PartitionView, seen: Watermark, before: Offset, epoch: Epoch) -> Anomaly:
    what = f"{seen.offset} in epoch {seen.epoch}, and {before} before, in epoch {epoch}"
    return Anomaly(Kind.WATERMARK_REGRESSION, view.partition, what)
