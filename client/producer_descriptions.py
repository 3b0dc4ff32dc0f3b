"""What a partition knows of its producers."""

from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    """One producer of one partition, as its leader knows it."""

    producer_id: ProducerId
    epoch: int
    """-1 if only its open transaction is known."""
    last_sequence: int | None
    """Of its last record there; `None`: none of this epoch."""
    last_timestamp_ms: int | None
    """When it was last heard."""
    coordinator_epoch: Epoch | None
    """Of the coordinator that ended its last transaction there; `None`: none was ended."""
    transaction_start: Offset | None
    """Where its open transaction begins; `None`: none is open."""
