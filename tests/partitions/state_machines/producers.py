"""Batches of producers, and a partition that knows them."""

from dataclasses import dataclass, field

import pytest

from tidemark.partitions.state_machines.producers import Duplicate, ProducerTable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, Offset

SEQUENCE_END = 2**31


def batch(
    sequence: int,
    *,
    records: int = 1,
    producer_id: int = 7,
    epoch: int = 0,
    timestamp_ms: int = 1_000,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset=Offset(0),
        batch_length=100,
        partition_leader_epoch=Epoch(0),
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=records - 1,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=records,
    )


@dataclass
class Partition:
    """A log as the table sees it: checked batches get the next offsets."""

    table: ProducerTable = field(default_factory=ProducerTable)
    end: int = 0
    log: list[tuple[BatchHeader, Offset]] = field(default_factory=list)

    def produce(self, header: BatchHeader) -> int:
        """The base offset that the producer is answered with."""
        match self.table.check(header):
            case Duplicate(base_offset=base_offset):
                return base_offset
        base_offset = Offset(self.end)
        self.table.append(header, base_offset)
        self.log.append((header, base_offset))
        self.end += header.last_offset_delta + 1
        return base_offset

    def refusal(self, header: BatchHeader) -> ErrorCode:
        with pytest.raises(RequestError) as caught:
            self.table.check(header)
        return caught.value.code
