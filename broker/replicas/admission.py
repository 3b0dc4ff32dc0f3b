"""What a batch must be before a producer may append it.

The header says nearly all; records are looked into only where the topic's configuration needs it.
Rules with a letter and a number are traps that broke real clients or brokers.
"""

from typing import Final

from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, UnsupportedMagic
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    ATTRIBUTES_AT,
    COMPRESSION_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Fields,
    check_crc_of,
    header_of,
    place_largest_time,
    read_fields,
)
from tidemark.protocol.records.skimming import keyless, times
from tidemark.protocol.types import BytesLike

ZSTD_SINCE: Final = 7
"""The Produce version from which on a producer may send zstd, and has to expect it from others."""
# Length, attributes, two deltas, key length, value length and header count: a byte each.
_RECORD_BYTES_MIN: Final = 7
_LOOKED_INTO_MAX: Final = 1_000_000
"""So many records of a batch are looked at, where they are: nothing else is served meanwhile. A
megabyte that is compressed may hold several millions."""
_MAX_TIMESTAMP: Final = BatchHeader._fields.index("max_timestamp")
_UNUSUAL: Final = COMPRESSION_BITS | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT


class InvalidRecords(RequestError):
    """A batch refused for some of its records, which a client can be told (KIP-467)."""

    def __init__(self, message: str, record_indexes: list[int]) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.record_indexes = record_indexes


def check_not_the_brokers_own(topic: str) -> None:
    """Raises `RequestError` for a topic whose records are no client's to write or delete.

    A coordinator reads its topic back at the next start, and could not serve if it found there
    what it has not written.
    """
    if topic in INTERNAL_TOPICS:
        raise RequestError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker itself changes {topic}"
        )


def admit(
    records: BytesLike | None, config: TopicConfig, *, api_version: int, now_ms: int
) -> BatchHeader:
    """The header of the one batch in `records`, where a largest timestamp that its producer has
    left out is put in. Raises `RequestError` if it may not be appended."""
    if not records:
        raise _invalid("no record batch was sent for this partition")
    return header_of(admit_fields(memoryview(records), config, api_version, now_ms))


def admit_fields(records: memoryview, config: TopicConfig, api_version: int, now_ms: int) -> Fields:
    """As `admit`, the fields of the header."""
    try:
        fields = read_fields(records)
        _, length, _, _, crc, attributes, delta, base_ms, max_ms, _, _, _, count = fields
        size_bytes = length + LOG_OVERHEAD
        if size_bytes > config.max_message_bytes:
            raise _too_large(size_bytes, config.max_message_bytes)
        if size_bytes < len(records):
            # P5: one batch per partition since Produce 3.
            raise _invalid(f"{len(records) - size_bytes} bytes follow the record batch")
        if size_bytes > len(records):
            raise CorruptBatch(0, f"{size_bytes} bytes, of which {len(records)} are there")
        check_crc_of(records[ATTRIBUTES_AT:], crc)
    except UnsupportedMagic as error:
        raise _invalid(f"only record batches of format 2 are taken: {error}") from None
    except CorruptBatch as error:
        raise RequestError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if count < 1 or delta != count - 1:
        raise _invalid(f"{count} records cannot have offsets 0 to {delta}")
    if attributes & _UNUSUAL:
        _check_attributes(header_of(fields), api_version)
    elif size_bytes - HEADER_BYTES < count * _RECORD_BYTES_MIN:
        raise _invalid(f"{count} records do not fit in {size_bytes} bytes")
    if max_ms < base_ms and not config.stamps_append_time:
        fields = _with_largest_time(records, fields)
        max_ms = fields[_MAX_TIMESTAMP]
    if not config.stamps_append_time and (
        max_ms - now_ms > config.message_timestamp_after_max_ms
        or 0 <= base_ms < now_ms - config.message_timestamp_before_max_ms
    ):
        raise _wrong_time(base_ms, max_ms, config, now_ms)
    if config.is_compacted:
        _check_keys(records, header_of(fields))
    return fields


def _check_attributes(header: BatchHeader, api_version: int) -> None:
    if header.is_control:
        raise _invalid("a client may not write control records")
    if header.delete_horizon_ms is not None:
        raise _invalid("from when on deletions may go is the broker's to say: leave bit 6 clear")
    if header.is_transactional and header.producer_id < 0:
        raise _invalid("a batch in a transaction of no producer")
    if header.compression is Compression.ZSTD and api_version < ZSTD_SINCE:
        raise RequestError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce {ZSTD_SINCE}; this is Produce {api_version}",
        )


def _with_largest_time(records: memoryview, fields: Fields) -> Fields:
    """The fields with the largest timestamp of the records, which the header does not have: it is
    written there, as by Kafka. Sarama before 1.45.1 leaves it at -1, and a look-up by time goes by
    headers."""
    if fields[-1] > _LOOKED_INTO_MAX:
        return fields
    try:
        largest_ms = max(time_ms for time_ms, _ in times(records, header_of(fields)))
    except CorruptBatch as error:
        raise _invalid(str(error)) from None  # as in `_check_keys`
    place_largest_time(records, 0, largest_ms)
    return read_fields(records)


def _wrong_time(base_ms: int, max_ms: int, config: TopicConfig, now_ms: int) -> RequestError:
    """The header's two are the producer's word for all; no timestamp at all is allowed."""
    if max_ms - now_ms > config.message_timestamp_after_max_ms:
        return RequestError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {max_ms} is {max_ms - now_ms} ms ahead of the broker's clock; "
            f"message.timestamp.after.max.ms is {config.message_timestamp_after_max_ms}",
        )
    return RequestError(
        ErrorCode.INVALID_TIMESTAMP,
        f"timestamp {base_ms} is {now_ms - base_ms} ms behind the broker's clock; "
        f"message.timestamp.before.max.ms is {config.message_timestamp_before_max_ms}",
    )


def _check_keys(records: BytesLike, header: BatchHeader) -> None:
    """P12: compaction keeps the last record of each key, and one without a key has none."""
    if header.record_count > _LOOKED_INTO_MAX:
        raise _invalid(
            f"{header.record_count} records in a batch for a compacted topic, which takes up to "
            f"{_LOOKED_INTO_MAX}"
        )
    try:
        without_key = keyless(records, header)
    except CorruptBatch as error:
        # With the right CRC this is what was sent: to be sent again, as CORRUPT_MESSAGE would have
        # it, does not mend it.
        raise _invalid(str(error)) from None
    if without_key:
        raise InvalidRecords("a compacted topic takes only records with a key", without_key)


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_RECORD, message)


def _too_large(size_bytes: int, bytes_max: int) -> RequestError:
    return RequestError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size_bytes} bytes; max.message.bytes is {bytes_max}",
    )
