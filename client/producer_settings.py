"""What `Client.producer` was told, checked."""

import sys

from tidemark.client.limits import (
    require_callable,
    require_name,
    require_patience,
    require_seconds,
    require_whole,
)
from tidemark.client.partitioner import Partitioner, murmur2_partition
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.values import dataclass


def as_compression(codec: Compression | str) -> Compression:
    """A codec by its name. Raises `ValueError` for another word."""
    if isinstance(codec, Compression):
        return codec
    try:
        return Compression[str(codec).upper()]
    except KeyError:
        known = ", ".join(each.name.lower() for each in Compression)
        raise ValueError(f"compression is one of {known}, not {codec!r}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """What `Client.producer` was told; see there."""

    acks: int = -1
    idempotent: bool | None = None
    compression: Compression = Compression.NONE
    linger_seconds: float = 0.0
    batch_bytes: int = 16 * 1024
    request_bytes_max: int = 1024 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    max_in_flight: int = 5
    delivery_timeout_seconds: float = 120.0
    partitioner: Partitioner = murmur2_partition
    transactional_id: str | None = None
    transaction_timeout_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.acks, int) or self.acks not in (-1, 0, 1):  # 1.0 is none
            raise ValueError(f'acks is "all", 1 or 0, not {self.acks!r}')
        if self.idempotent not in (None, True, False):
            raise TypeError(f"idempotent is True, False or None, not {self.idempotent!r}")
        require_whole("max_in_flight", self.max_in_flight, least=1)
        require_whole("batch_bytes", self.batch_bytes)
        require_whole("buffer_bytes", self.buffer_bytes, least=1, most=sys.maxsize)
        require_callable("partitioner", self.partitioner)
        require_seconds("linger_ms / 1000", self.linger_seconds, least=0)
        require_patience("delivery_timeout_seconds", self.delivery_timeout_seconds)
        require_seconds("transaction_timeout_seconds", self.transaction_timeout_seconds)
        require_whole("request_bytes_max", self.request_bytes_max, least=1)
        if self.transactional_id is not None:
            require_name("transactional_id", self.transactional_id)
        if self.transactional_id is not None and not self.wants_identity:
            raise ValueError('a transactional producer is idempotent and needs acks="all"')
        if self.idempotent and self.acks != -1:
            raise ValueError('an idempotent producer needs acks="all"')
        if self.idempotent and self.max_in_flight > 5:
            # The broker remembers five batches, so a sixth could not be told from a new one.
            raise ValueError("an idempotent producer has at most 5 requests in flight")

    @property
    def wants_identity(self) -> bool:
        if self.idempotent is None:
            return self.acks == -1 and self.max_in_flight <= 5
        return self.idempotent
