"""Judges of what clients have seen, and of what replicas do.

`check` takes a history: what was sent and polled, when, and what came of it. It knows nothing of
how the history came about, so the simulator's runs and those of real processes are judged alike.
`groups` judges while it happens, from inside, and therefore only in the simulator.

The anomalies and their names are those of Jepsen's workload for Kafka. Because offsets say in
which order a partition holds its records, every check takes time linear in the history, but for
sorting.
"""

from tidemark.testing.checkers.anomalies import Anomaly, Kind
from tidemark.testing.checkers.check import check
from tidemark.testing.checkers.history import History, Outcome, Poll, Polled, Send, Watermark

__all__ = [
    "Anomaly",
    "History",
    "Kind",
    "Outcome",
    "Poll",
    "Polled",
    "Send",
    "Watermark",
    "check",
]
