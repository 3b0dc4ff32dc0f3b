"""What a topic promises, by how it is made and written to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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


SYNCED: Final = Promise(
    "synced",
    configs={"flush": "commit", "min.insync.replicas": "2", **_SMALL_SEGMENTS},
    producer={"enable.idempotence": True},
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
