"""DescribeProducers: who writes to a partition, and whose transactions are open there.

Each of its replicas answers, as with Kafka: a follower knows what its leader does, as far as it has
the log. A client asks the leader, unless it is told which broker to ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, ProducerId

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    del context
    steps, topics = Steps(), list[TopicResponse]()
    answered = set[tuple[str, int]]()  # once, however often they are named
    for topic in request.topics:
        partitions = list[PartitionResponse]()
        for index in topic.partition_indexes:
            if (topic.name, index) in answered:
                continue
            answered.add((topic.name, index))
            partitions.append(_answer(node, topic.name, index))
            await steps.did(1 + len(partitions[-1].active_producers))
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


def _answer(node: Node, topic: str, partition: int) -> PartitionResponse:
    try:
        if node.topics.get(topic) is None:
            node.topics.check_name(topic)
        replica = node.topics.replica_here(topic, partition)
        producers = replica.member.producers
        if replica.member.failure is not None:
            raise replica.why_not_serving()
    except RequestError as error:
        return PartitionResponse(
            partition_index=partition,
            error_code=error.code,
            error_message=error.message,
            active_producers=(),
        )
    return PartitionResponse(partition_index=partition, active_producers=_producers(producers))


def _producers(table: ProducerTable) -> list[ProducerState]:
    """Also those that have given way, if a transaction of theirs is open."""
    opened = dict(table.transactions.opened)
    found = []
    for producer_id, producer in table.producers:
        begun = opened.pop(ProducerId(producer_id), None)
        state = ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.heard_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=NO_OFFSET if begun is None else begun.first_offset,
        )
        found.append(state)
    found += [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=-1,
            last_timestamp=begun.began_ms,
            coordinator_epoch=NO_EPOCH,
            current_txn_start_offset=begun.first_offset,
        )
        for producer_id, begun in opened.items()
    ]
    return found
