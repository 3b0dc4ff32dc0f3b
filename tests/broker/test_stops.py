"""What a broker waits for when it stops, while the others of its cluster work on."""

import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tests.broker.handlers.coordinators import asked_of
from tests.broker.handlers.group_clients import AT_ONCE, GROUP, create_topic, find
from tests.broker.handlers.producing import batch, produce, request
from tests.broker.nodes import open_node
from tidemark.broker import stopping
from tidemark.broker.handlers import txn_offset_commit
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.broker.replicas import opening
from tidemark.client import open_client
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidemark.testing import open_cluster


def slow_down(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = Journal.sync

    def sync_slowly(journal: Journal, *, notes: bool) -> None:
        time.sleep(0.05)
        sync(journal, notes=notes)

    monkeypatch.setattr(Journal, "sync", sync_slowly)


async def test_a_follower_whose_disk_is_never_idle_stops_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others send it more as long as it runs: that is no disk which takes nothing."""
    monkeypatch.setattr(stopping, "STOP_DISK_SECONDS", 3.0)

    async def produce_for_ever(leader: Node) -> None:
        while True:
            await produce(leader, request(batch(), acks=1))
            await trio.sleep(0.004)

    async with open_brokers(tmp_path, 3) as brokers, trio.open_nursery() as tasks:
        await brokers.create(NewTopic(name="t", partitions=1, replication_factor=3))

        def leaders() -> list[Node]:
            replicas = [(node, node.topics.replica("t", 0)) for node in brokers.nodes]
            return [node for node, replica in replicas if replica and replica.is_serving]

        await wait_until(lambda: len(leaders()) == 1)
        (leader,) = leaders()
        follower = next(number for number in (1, 2, 3) if number != leader.node_id)
        disk = brokers[follower].disk
        slow_down(monkeypatch)
        tasks.start_soon(produce_for_ever, leader)
        tasks.start_soon(produce_for_ever, leader)
        await disk.wait_durable(disk.newest + 5)
        await brokers.stop(follower)  # raises what the broker's block does
        assert disk.error is None
        tasks.cancel_scope.cancel()


async def test_it_waits_for_no_coordinator_of_a_transaction(tmp_path: Path) -> None:
    """The one that is busy, or gone, is asked again for five seconds; meanwhile a broker that stops
    would lead its partitions and serve nobody."""
    commit = TxnOffsetCommitRequest(
        transactional_id="mine",
        group_id=GROUP,
        producer_id=7,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
        ],
    )
    told: list[int] = []
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        coordinator = asked_of(node, ErrorCode.CONCURRENT_TRANSACTIONS)

        async def commit_it() -> None:
            answer = await ask(txn_offset_commit.handle, node, commit, 5)
            told.extend(each.error_code for each in answer.topics[0].partitions)

        with trio.fail_after(3):
            async with trio.open_nursery() as tasks:
                tasks.start_soon(commit_it)
                await wait_until(lambda: len(coordinator.asked) > 1)
                stopping.release_waiting(node)
            await commit_it()  # taken before, and looked at only now
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]


async def test_what_it_led_is_led_by_others_before_its_logs_are_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clients are sent away by then. The more partitions there are, the longer it takes."""
    goes_on = threading.Event()
    close_logs = opening._close_logs

    def close_late(*arguments: Any) -> None:
        assert goes_on.wait(20)
        close_logs(*arguments)

    patient = {"peer.failure.timeout.ms": "30000"}
    async with (
        open_cluster(brokers=3, settings=patient) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        await client.admin.create_topic("t", partitions=1)
        leader = await cluster.wait_leader("t")
        monkeypatch.setattr(opening, "_close_logs", close_late)
        async with trio.open_nursery() as tasks:
            tasks.start_soon(cluster.stop, leader)
            try:
                await cluster.wait_leader("t", other_than=leader, timeout_seconds=5)
            finally:
                goes_on.set()


@pytest.mark.parametrize(("brokers", "is_connected"), [(3, True), (3, False), (1, True)])
async def test_others_get_time_to_elect_where_a_client_would_ask_who_leads(
    brokers: int, is_connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    sleep = trio.sleep

    async def sleep_and_say(seconds: float) -> None:
        slept.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(stopping, "NOTICE_SECONDS", notice := 0.0625)
    async with open_cluster(brokers=brokers) as cluster, AsyncExitStack() as clients:
        if is_connected:
            address = str(cluster.brokers[1].kafka_address)
            await clients.enter_async_context(open_client(address))
        monkeypatch.setattr(trio, "sleep", sleep_and_say)
        await cluster.stop(1)
    assert (notice in slept) == (is_connected and brokers > 1)
