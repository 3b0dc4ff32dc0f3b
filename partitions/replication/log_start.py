"""Moving a log's start, without losing what the batches below it said of producers.

Whether a producer's batch is a retry, or one before it is missing, is known from the batches in the
log. Those below the start are gone; so the record that moves the start carries what is known of
producers, and where a log begins, that lies beside it (`producer_state`).

It has to be true whatever becomes of the log's end. So what is known when the move is wanted is put
by, and the start moves once all of the log that it speaks of is committed: at once, where nothing
is in flight; else a moment later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark.partitions.replication.producer_state import EpochFrom, ProducerState
from tidemark.partitions.storage.log import Log
from tidemark.protocol.types import Offset


class StartMove(NamedTuple):
    """Of one log: to where, and when."""

    to: Offset
    once_committed: Offset
    """It may be done when the high watermark is here."""
    snapshot: bytes


def planned(
    log: Log,
    producers: ProducerState,
    epochs: Sequence[EpochFrom],
    to: Offset,
    waiting: StartMove | None,
) -> StartMove:
    """A move to `to`, which is committed. One that waits already goes as far, if this is further:
    what it knows was the log's end, and is further still. `epochs` are the log's, ascending."""
    if waiting is not None:
        return waiting._replace(to=max(waiting.to, to))
    if not producers.table:
        return StartMove(to, to, producers.take())
    return StartMove(to, log.end_offset, producers.take_ahead(log.end_offset, epochs))
