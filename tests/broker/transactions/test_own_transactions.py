"""Where a partition's leader coordinates the transaction, it knows at once whether it is open."""

from pathlib import Path

import pytest

from tests.broker.handlers.producing import batch, produce_all, request
from tests.broker.nodes import open_node
from tests.broker.transactions.producers import FEW, TXN, Producer, add, begin
from tidemark.broker.network.requests import NotNow
from tidemark.broker.node import Node
from tidemark.broker.replicas.verifying import Transactional
from tidemark.broker.transactions.own_transactions import by_own
from tidemark.partitions.state_machines.transactions.effects import Write
from tidemark.partitions.state_machines.transactions.held import Unstored
from tidemark.partitions.state_machines.transactions.requests import Answer
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import ProducerId, TopicPartition

OLD, ADDING = 10, 12
"""Produce versions: who puts the partition into the transaction is the client, or its leader."""


async def produce(node: Node, producer: Producer, version: int = OLD) -> ErrorCode:
    made = batch(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        is_transactional=True,
    )
    asked = request(made, topic="orders", transactional_id=TXN)
    (answer,) = await produce_all(node, asked, version)
    return ErrorCode(answer.error_code)


async def test_the_first_batch_waits_for_nobody(tmp_path: Path) -> None:
    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        await add(node, producer, "orders", 0)
        assert await produce(node, producer) is ErrorCode.NONE


async def test_what_is_in_no_open_transaction_is_refused_at_once(tmp_path: Path) -> None:
    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        await add(node, producer, "orders", 1)
        assert await produce(node, producer) is ErrorCode.INVALID_TXN_STATE
        await add(node, producer, "orders", 0)
        assert await produce(node, producer) is ErrorCode.NONE
        fenced = Producer(ErrorCode.NONE, producer.id, producer.epoch + 1)
        assert await produce(node, fenced) is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_where_the_leader_adds_the_partition_its_record_is_waited_for(tmp_path: Path) -> None:
    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        with pytest.raises(NotNow):
            await produce(node, producer, ADDING)


async def test_nothing_is_said_of_what_another_coordinates_or_of_an_id_that_is_busy(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        at_once = by_own(node.transactions)
        who = Transactional(TXN, ProducerId(producer.id), producer.epoch, adds=False)
        place = TopicPartition("orders", 0)
        (error,) = (at_once(who, [place]) or {}).values()
        assert error is not None
        assert error.code is ErrorCode.TRANSACTION_ABORTABLE
        partition = node.transactions._topic.serving(TXN)
        write = Write(0, TXN, None)
        partition.shard._held[TXN].unstored = Unstored(write, Answer(), None, None)
        assert at_once(who, [place]) is None
        node.transactions.resign()
        assert at_once(who, [place]) is None
