"""What a topic's configuration and a broker's settings say to the compaction of a log."""

from typing import Final

from tidemark.protocol.values import dataclass

NO_LIMIT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """Of one topic. The names are those of Kafka's topic configs."""

    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    min_cleanable_dirty_ratio: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionLimits:
    """Of one broker."""

    map_bytes_max: int = 128 << 20
    """What the map of keys may take; a log with more keys takes several runs."""
    bytes_per_second_max: int | None = None
    """What is read and written, together."""
