"""All checks of a history, one after the other."""

from collections.abc import Iterator

from tidemark.testing.checkers import contents, order, real_time
from tidemark.testing.checkers.anomalies import Anomaly
from tidemark.testing.checkers.history import History
from tidemark.testing.checkers.partition_view import PartitionView, views


def check(
    history: History, *, reads_are_final: bool = True, may_jump: bool = False
) -> list[Anomaly]:
    """What is wrong with the history; nothing, if every promise was kept.

    `reads_are_final`: consumers read every partition to its end after the last send.
    `may_jump`: the consumers are members of groups, and lose and get partitions.
    """
    return [
        anomaly
        for view in views(history)
        for anomaly in _of(view, reads_are_final=reads_are_final, may_jump=may_jump)
    ]


def _of(view: PartitionView, *, reads_are_final: bool, may_jump: bool) -> Iterator[Anomaly]:
    yield from contents.missing(view, reads_are_final=reads_are_final)
    yield from contents.unexpected(view)
    yield from contents.ambiguous(view)
    yield from contents.reused(view)
    yield from order.sends(view)
    yield from order.polls(view, may_jump=may_jump)
    yield from order.keys(view)
    yield from real_time.sends(view)
    yield from real_time.watermarks(view)
