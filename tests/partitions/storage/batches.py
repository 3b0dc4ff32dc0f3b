"""Record batches for tests of storage, made as a leader would have placed them."""

from collections.abc import Sequence

from tidemark.protocol.records.header import place
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset


def batch(
    base_offset: int,
    records: int = 1,
    *,
    size: int = 10,
    timestamps_ms: Sequence[int] | None = None,
    epoch: int = 1,
) -> bytes:
    """A batch of `records` records whose values have `size` bytes."""
    times = timestamps_ms if timestamps_ms is not None else [1000 + base_offset] * records
    data = bytearray(
        encode_batch([Record(value=bytes([65 + t % 26]) * size, timestamp_ms=t) for t in times])
    )
    place(data, 0, base_offset=Offset(base_offset), epoch=Epoch(epoch))
    return bytes(data)
