"""Fetching from a node without sockets, and reading what comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.broker.handlers.asking import wait
from tests.broker.handlers.producing import batch, new_topic, produce, request
from tests.broker.nodes import context
from tidemark.broker.handlers import fetch as handler
from tidemark.broker.network.requests import Pending
from tidemark.broker.node import Node
from tidemark.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidemark.protocol.records.records import decode_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One partition to read."""

    topic: str = "t"
    partition: int = 0
    offset: int = 0
    bytes_max: int = 1_000_000
    epoch: int = -1


def asking(*wants: Want, **fields: Any) -> FetchRequest:  # Any: any field of the request
    return FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50_000_000, **fields},
        topics=[
            FetchTopic(
                topic=want.topic,
                partitions=[
                    FetchPartition(
                        partition=want.partition,
                        fetch_offset=want.offset,
                        partition_max_bytes=want.bytes_max,
                        current_leader_epoch=want.epoch,
                    )
                ],
            )
            for want in wants
        ],
    )


def begin_fetch(
    node: Node, asked: FetchRequest, version: int = 12
) -> FetchResponse | Pending[FetchResponse]:
    return handler.handle(node, asked, context(version))


async def fetch(
    node: Node, *wants: Want, version: int = 12, **fields: Any
) -> Sequence[PartitionData]:
    """The partitions of the answer, in its order."""
    answer = begin_fetch(node, asking(*wants, **fields), version)
    if isinstance(answer, Pending):
        answer = await wait(answer)
    return [each for topic in answer.responses for each in topic.partitions]


def read(data: PartitionData) -> bytes:
    """The records, which are a slice of a file."""
    assert data.records is not None
    assert not isinstance(data.records, bytes | memoryview)
    return bytes(data.records.read())  # type: ignore[attr-defined]  # a LogSlice


def offsets(data: PartitionData) -> list[int]:
    return [record.offset for record in decode_records(read(data))]


async def fill(node: Node, count: int = 3, topic: str = "t", size: int = 100) -> int:
    """`count` batches of two records each; how many bytes each batch has."""
    await new_topic(node, topic)
    made = batch(bytes(size), bytes(size))
    for _ in range(count):
        await produce(node, request(made, topic=topic))
    return len(made)
