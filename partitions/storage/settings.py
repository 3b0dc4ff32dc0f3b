"""What a topic's configuration says to its logs."""

from typing import Final

from tidemark.protocol.values import dataclass

SEGMENT_BYTES_MAX: Final = 2**31 - 1
"""Positions in an index are int32."""
INDEX_INTERVAL_BYTES: Final = 4096
RECYCLED_BATCH_BYTES: Final = 64 * 1024
UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """One log's settings. The names are those of Kafka's topic configs; -1 is no limit."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * 24 * 3600 * 1000
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    recycled_batch_bytes: int = RECYCLED_BATCH_BYTES
    """Where batches have so much on average, the file of a segment that goes may be written over by
    the next; -1 is never."""

    def __post_init__(self) -> None:
        assert 0 < self.segment_bytes <= SEGMENT_BYTES_MAX
        assert self.segment_ms > 0
        assert self.segment_jitter_ms >= 0
        assert self.index_interval_bytes >= 0
