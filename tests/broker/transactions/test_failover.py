"""A coordinator goes in each phase of a transaction; the next one goes on where it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.broker.clusters import SECONDS_MAX, Brokers, insist, open_brokers, wait_until
from tests.broker.transactions.producers import (
    TXN,
    Producer,
    add,
    as_leader,
    describe,
    end,
    ends,
    init,
    wait_state,
)
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.topic_names import TRANSACTION_STATE
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

NONE = ErrorCode.NONE


@asynccontextmanager
async def three_brokers(data_dir: Path) -> AsyncIterator[Brokers]:
    """With one partition of transactional ids, of which each has a replica."""
    async with open_brokers(data_dir, 3, transaction_state_log_num_partitions=1) as brokers:
        await insist(brokers[1].transactions.ensure_topic)
        await wait_until(lambda: all(node.topics.get(TRANSACTION_STATE) for node in brokers.nodes))
        yield brokers


async def coordinator(brokers: Brokers) -> Node:
    """The broker that coordinates now, once there is one."""
    with trio.fail_after(SECONDS_MAX):
        while True:
            for node in brokers.nodes:
                try:
                    node.transactions.needs_fresh_id(TXN)
                except RequestError:
                    continue
                return node
            await trio.sleep(0.02)


async def topic_apart_from(node: Node, brokers: Brokers, name: str) -> Node:
    """A topic of one partition, on another broker: that one."""
    (other, *_) = [each for each in brokers.nodes if each.node_id != node.node_id]
    assignments = ((NodeId(other.node_id),),)
    await brokers.create(NewTopic(name=name, assignments=assignments))
    await wait_until(lambda: other.topics.replica(name, 0) is not None)
    await wait_until(lambda: all(each.topics.get(name) for each in brokers.nodes))
    return other


async def begun(node: Node) -> Producer:
    with trio.fail_after(SECONDS_MAX):
        while (producer := await init(node)).error is not NONE:  # noqa: ASYNC110
            await trio.sleep(0.02)
    return producer


async def test_one_that_is_open_goes_on_with_the_next_coordinator(tmp_path: Path) -> None:
    async with three_brokers(tmp_path) as brokers:
        first = await coordinator(brokers)
        await topic_apart_from(first, brokers, "orders")
        producer = await begun(first)
        assert await add(first, producer, "orders", 0) == [NONE]
        await brokers.stop(first.node_id)
        second = await coordinator(brokers)
        assert second.node_id != first.node_id
        assert (await describe(second)).transaction_state == "Ongoing"
        # As a leader would, over the connections between brokers.
        (other,) = [node for node in brokers.nodes if node.node_id != second.node_id]
        assert other.transactions.find(TXN) == second.node_id
        asked = [(TXN, producer, "orders", (0,))]
        assert await as_leader(other, asked, verify=True) == [[ErrorCode.NOT_COORDINATOR]]
        assert await as_leader(second, asked, verify=True) == [[NONE]]
        assert (await end(second, producer)).error_code == NONE
        await wait_state(second, "CompleteCommit")
        holder = next(node for node in brokers.nodes if node.topics.replica("orders", 0))
        assert ends(holder, "orders") == [1]


async def test_one_that_was_decided_gets_its_markers_from_the_next_coordinator(
    tmp_path: Path,
) -> None:
    async with three_brokers(tmp_path) as brokers:
        first = await coordinator(brokers)
        holder = await topic_apart_from(first, brokers, "orders")
        producer = await begun(first)
        await add(first, producer, "orders", 0)
        await brokers.stop(holder.node_id)
        assert (await end(first, producer)).error_code == NONE, "it is decided without markers"
        state = await describe(first)
        assert state.transaction_state == "PrepareCommit"
        assert [topic.topic for topic in state.topics] == ["orders"], "which is owed one"
        refused = (await end(first, producer)).error_code
        assert refused == ErrorCode.CONCURRENT_TRANSACTIONS
        await brokers.stop(first.node_id)
        await brokers.start(holder.node_id)
        second = await coordinator(brokers)
        await wait_state(second, "CompleteCommit")
        assert ends(brokers[holder.node_id], "orders") == [1]
        assert (await end(second, producer)).error_code == NONE, "the same answer again"
        # The one before comes back, and follows.
        await brokers.start(first.node_id)
        await wait_until(lambda: brokers[first.node_id].transactions.find(TXN) == second.node_id)
        assert (await init(brokers[first.node_id])).error is ErrorCode.NOT_COORDINATOR


async def test_who_waits_when_the_lead_is_lost_is_sent_to_look_for_another(
    tmp_path: Path,
) -> None:
    async with three_brokers(tmp_path) as brokers:
        first = await coordinator(brokers)
        await topic_apart_from(first, brokers, "orders")
        producer = await begun(first)
        await add(first, producer, "orders", 0)
        others = [node for node in brokers.nodes if node.node_id != first.node_id]
        for other in others:
            brokers.peers(first.node_id).cut(other.node_id)
        with trio.fail_after(15):
            answer = await end(first, producer)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        second = await coordinator(brokers)
        assert second in others
        assert (await describe(second)).transaction_state == "Ongoing", "it was not decided"
        assert (await end(second, producer, commit=False)).error_code == NONE
        await wait_state(second, "CompleteAbort")
