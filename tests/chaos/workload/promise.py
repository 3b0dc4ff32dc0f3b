"""What a topic promises, by how it is made and written to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LARGE_BYTES: Final = 160_000
"""Above the 128 KiB that the journal takes."""
_FILL: Final = "."
_SMALL_SEGMENTS: Final = {"segment.bytes": "262144"}


@dataclass(frozen=True, slots=True)
class Promise:
    """A topic's configs and its producers' settings, and so what may happen to its records."""

    name: str
    configs: dict[str, str] = field(hash=False)
    producer: dict[str, str | int | bool] = field(hash=False)
    outlives_power: bool = True
    """Whether a majority may lose its power at once."""
    outlives_leader: bool = True
    """Whether what was acknowledged may not be lost with the leader alone."""
    replicas: int = 3
    """If there are so many brokers."""
    large_every: int = 0
    """One record in so many is too large for the journal, and synced in the log's own files."""


SYNCED: Final = Promise(
    "synced",
    configs={"flush": "commit", "min.insync.replicas": "2", **_SMALL_SEGMENTS},
    producer={"enable.idempotence": True},
    large_every=75,
)
CACHED: Final = Promise(
    "cached",
    configs={"flush": "os", "min.insync.replicas": "2", **_SMALL_SEGMENTS},
    producer={"enable.idempotence": True},
    outlives_power=False,
)
LEADER_ONLY: Final = Promise(
    "leader-only",
    configs={"flush": "commit", **_SMALL_SEGMENTS},
    # Without idempotence a retry may double a record, so there is none.
    producer={"enable.idempotence": False, "acks": 1, "message.send.max.retries": 0},
    outlives_leader=False,
)
MOVED: Final = Promise(
    "moved",
    configs={"flush": "commit", **_SMALL_SEGMENTS},
    producer={"enable.idempotence": True},
    # So that three brokers have a place to move one to.
    replicas=2,
)


def majority_of(promise: Promise, brokers: int) -> int:
    """Of a partition's replicas in a cluster of so many brokers."""
    return min(promise.replicas, brokers) // 2 + 1


def record_of(value: str, *, is_large: bool) -> str:
    """What is sent for a value of the history."""
    return value.ljust(LARGE_BYTES, _FILL) if is_large else value


def value_of(record: str) -> str:
    """What of a record is in the history."""
    return record.rstrip(_FILL)
