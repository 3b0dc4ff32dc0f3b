"""What a transactional producer asks its coordinator, through the wire at any version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import trio

from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    find_coordinator,
    init_producer_id,
)
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.topic_names import TRANSACTION_STATE
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidemark.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from tidemark.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidemark.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidemark.protocol.messages.init_producer_id import InitProducerIdRequest
from tidemark.protocol.types import NO_PRODUCER, Offset

TXN = "payments"
FEW = {"transaction_state_log_num_partitions": 2, "offsets_topic_num_partitions": 2}
"""Settings with which a node starts quickly."""


@dataclass(frozen=True)
class Producer:
    error: ErrorCode
    id: int = NO_PRODUCER
    epoch: int = -1


async def begin(node: Node, *topics: str) -> Producer:
    """A producer with its id, and topics of two partitions."""
    for topic in topics:
        await node.topics.create(NewTopic(name=topic, partitions=2))
    await find(node)
    producer = await init(node)
    assert producer.error is ErrorCode.NONE
    return producer


async def find(node: Node, name: str = TXN) -> int:
    """What every transactional client does first; it makes the topic of transactions."""
    request = FindCoordinatorRequest(key=name, key_type=1)
    found = await ask(find_coordinator.handle, node, request, 3)
    assert found.error_code == ErrorCode.NONE
    return found.node_id


async def init(
    node: Node,
    name: str | None = TXN,
    *,
    before: Producer | None = None,
    timeout_ms: int = 60_000,
    version: int = 4,
) -> Producer:
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=timeout_ms,
        producer_id=NO_PRODUCER if before is None else before.id,
        producer_epoch=-1 if before is None else before.epoch,
    )
    answer = await ask(init_producer_id.handle, node, request, version)
    return Producer(ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch)


async def add(
    node: Node, producer: Producer, topic: str, *partitions: int, version: int = 3
) -> list[ErrorCode]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
    )
    answer = await ask(add_partitions_to_txn.handle, node, request, version)
    return [
        ErrorCode(each.partition_error_code)
        for each in answer.results_by_topic_v3_and_below[0].results_by_partition
    ]


async def as_leader(
    node: Node,
    asked: Iterable[tuple[str, Producer, str, tuple[int, ...]]],
    *,
    verify: bool,
    version: int = 5,
) -> list[list[ErrorCode]]:
    """What a partition's leader asks, of several transactions by name."""
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                verify_only=verify,
                topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
            )
            for name, producer, topic, partitions in asked
        ]
    )
    answer = await ask(add_partitions_to_txn.handle, node, request, version)
    return [
        [ErrorCode(each.partition_error_code) for each in of.topic_results[0].results_by_partition]
        for of in answer.results_by_transaction
    ]


async def add_offsets(node: Node, producer: Producer, group_id: str = "group") -> ErrorCode:
    request = AddOffsetsToTxnRequest(
        transactional_id=TXN,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=group_id,
    )
    answer = await ask(add_offsets_to_txn.handle, node, request, 3)
    return ErrorCode(answer.error_code)


async def end(
    node: Node, producer: Producer, *, commit: bool = True, version: int = 3
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=TXN,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return await ask(end_txn.handle, node, request, version)


async def describe(node: Node, name: str = TXN) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    (state,) = (await ask(describe_transactions.handle, node, request, 0)).transaction_states
    return state


async def wait_state(node: Node, state: str) -> None:
    with trio.fail_after(20):
        while (await describe(node)).transaction_state != state:  # noqa: ASYNC110
            await trio.sleep(0.01)


def ends(node: Node, topic: str) -> list[Offset]:
    """Where the partitions' logs end: a marker moves it by one."""
    found = node.topics.get(topic)
    assert found is not None
    return [replica.log_end for replica in found.replicas]


def records_of_transactions(node: Node) -> int:
    return sum(ends(node, TRANSACTION_STATE))
