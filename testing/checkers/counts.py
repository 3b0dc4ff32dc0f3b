"""Whether readers that went from the start to the end got each record as often as they should."""

from collections import Counter
from collections.abc import Collection, Iterator

from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.history import History, Outcome
from tidemark.testing.checkers.partition_view import views


def counts(
    history: History, readers: Collection[str], *, may_repeat: bool = False
) -> Iterator[Anomaly]:
    """Judge `readers`, which have shared all partitions among them and read them to the end.

    That is one consumer that was assigned everything, or the members of a group; the latter
    may get a record again (`may_repeat`) when a partition changes hands.
    """
    for view in views(history):
        seen = Counter(
            record.value for run in view.runs if run.client in readers for record in run.records
        )
        for send in view.sends:
            for value in send.values:
                if send.outcome is Outcome.OK and not seen[value]:
                    what = f"{value!r} was acknowledged, and the readers never got it"
                    yield Anomaly(Kind.COUNT, view.partition, what)
                elif seen[value] > 1 and not may_repeat:
                    what = f"the readers got {value!r} {seen[value]} times"
                    yield Anomaly(Kind.COUNT, view.partition, what)
