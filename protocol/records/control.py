"""Control batches: the markers that say in a partition's log how a transaction has ended.

A control batch has one record, in Kafka's format; its header says of whom it is, not what it says:

| part  | layout, big-endian                                  |
|-------|-----------------------------------------------------|
| key   | int16 version = 0, int16 kind: 0 abort, 1 commit    |
| value | int16 version = 0, int32 coordinator epoch          |

Kafka has other kinds in logs of its own, which no partition has here. Later versions only add to
the end.

Example: a commit told by a coordinator of epoch 7: key `00 00 00 01`, value `00 00 00 00 00 07`.
"""

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import Record, decode_batch, encode_batch
from tidemark.protocol.types import BytesLike, ProducerId

_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class Marker(NamedTuple):
    """How a transaction has ended."""

    is_commit: bool
    coordinator_epoch: int


def encode_marker(
    producer_id: ProducerId, producer_epoch: int, marker: Marker, *, timestamp_ms: int
) -> bytes:
    """A control batch, not yet placed in a log."""
    kind = _COMMIT if marker.is_commit else _ABORT
    record = Record(
        timestamp_ms=timestamp_ms,
        key=_KEY.pack(_VERSION, kind),
        value=_VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return encode_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_marker(data: BytesLike, header: BatchHeader, at: int = 0) -> Marker | None:
    """What the control batch at `at` says; `None` if it is of another kind, and means nothing here.

    Its CRC is checked. Raises `CorruptBatch`.
    """
    records = decode_batch(data, header, at)
    try:
        _, kind = _KEY.unpack_from(records[0].key or b"")
        if kind not in (_ABORT, _COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (IndexError, StructError):
        raise CorruptBatch(at, "a control batch without a marker") from None
    return Marker(kind == _COMMIT, coordinator_epoch)
