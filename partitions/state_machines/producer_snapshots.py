"""The producers' table as bytes: a header, one entry for each producer, the least recently heard
first, and what `open_transactions` has to say.

| part     | layout, big-endian                                                                   |
|----------|--------------------------------------------------------------------------------------|
| header   | uint32 CRC32C of the rest, int16 version = 2, int32 producers                        |
| producer | int64 id, int16 epoch, int32 coordinator epoch, int32 next sequence, int64 appended, |
|          | int64 heard ms, int8 batches                                                         |
| batch    | int32 first and last sequence, int64 base and last offset, int64 timestamp ms        |
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.partitions.state_machines.producer_entry import Producer
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.errors import StorageError

_VERSION: Final = 2
_CRC: Final = Struct(">I")
_HEADER: Final = Struct(">hi")
_PRODUCER: Final = Struct(">qhiiqqb")
_BATCH: Final = Struct(">iiqqq")


def encode(producers: Mapping[int, Producer], transactions: OpenTransactions) -> bytes:
    parts = [_HEADER.pack(_VERSION, len(producers))]
    for producer_id, producer in producers.items():
        parts.append(
            _PRODUCER.pack(
                producer_id,
                producer.epoch,
                producer.coordinator_epoch,
                producer.next_sequence,
                producer.appended,
                producer.heard_ms,
                len(producer.batches),
            )
        )
        parts += [_BATCH.pack(*batch) for batch in producer.batches]
    body = b"".join([*parts, transactions.encode()])
    return _CRC.pack(crc32c(body)) + body


def decode(data: bytes) -> tuple[list[tuple[int, Producer]], OpenTransactions]:
    """Raises `StorageError` if it is no snapshot of this version."""
    at = _CRC.size + _HEADER.size
    if len(data) < at or _CRC.unpack_from(data)[0] != crc32c(data[_CRC.size :]):
        raise StorageError("a producer snapshot that is cut off or damaged")
    version, count = _HEADER.unpack_from(data, _CRC.size)
    if version != _VERSION:
        raise StorageError(f"a producer snapshot of version {version}, not {_VERSION}")
    producers = []
    for _ in range(count):
        producer_id, producer, at = _decode_producer(data, at)
        producers.append((producer_id, producer))
    return producers, OpenTransactions.decode(data[at:])


def _decode_producer(data: bytes, at: int) -> tuple[int, Producer, int]:
    producer_id, epoch, coordinator_epoch, *rest, batches = _PRODUCER.unpack_from(data, at)
    producer = Producer(epoch, coordinator_epoch)
    producer.next_sequence, producer.appended, producer.heard_ms = rest
    at += _PRODUCER.size
    for _ in range(batches):
        producer.batches.append(_BATCH.unpack_from(data, at))
        at += _BATCH.size
    return producer_id, producer, at
