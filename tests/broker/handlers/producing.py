"""Producing to a node without sockets, as a connection does: the batch lies in a buffer."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.broker.handlers.asking import wait
from tests.broker.nodes import context
from tidemark.broker.handlers import produce as handler
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import Pending
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.schema import ZERO_UUID


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def batch(*values: bytes, key: bytes | None = None, **options: Any) -> bytes:  # Any: any option
    now = now_ms()
    records = [Record(timestamp_ms=now, key=key, value=value) for value in values or (b"value",)]
    return encode_batch(records, **options)


async def new_topic(node: Node, name: str = "t", **configs: str) -> Replica:
    """A topic of one partition, which is returned; `configs` have underscores for dots."""
    topic = await node.topics.create(
        NewTopic(
            name=name,
            partitions=1,
            configs={name.replace("_", "."): value for name, value in configs.items()},
        )
    )
    return topic.replicas[0]


def request(
    records: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
    topic_id: UUID = ZERO_UUID,
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
    )


def begin(
    node: Node, asked: ProduceRequest, version: int = 9
) -> ProduceResponse | Pending[ProduceResponse] | None:
    """What the handler says at once."""
    # The broker places the batch where it lies, so the buffer is one that can be written.
    frame = memoryview(bytearray(encode(asked, version)))
    return handler.handle(node, decode(ProduceRequest, version, frame), context(version))


async def produce(node: Node, asked: ProduceRequest, version: int = 9) -> PartitionProduceResponse:
    """The answer for the one partition, after all waiting."""
    (partition,) = await produce_all(node, asked, version)
    return partition


async def produce_all(
    node: Node, asked: ProduceRequest, version: int = 9
) -> Sequence[PartitionProduceResponse]:
    answer = begin(node, asked, version)
    if isinstance(answer, Pending):
        answer = await wait(answer)
    assert answer is not None
    answer = decode(ProduceResponse, version, encode(answer, version))
    return [each for topic in answer.responses for each in topic.partition_responses]


def stored(replica: Replica) -> bytes:
    """All that is committed."""
    return replica.read(replica.log_start, bytes_max=1_000_000, at_least_one=True).read()


def values(replica: Replica) -> list[tuple[int, bytes | None]]:
    """The same, as offsets and values."""
    return [(record.offset, record.value) for record in decode_records(stored(replica))]
