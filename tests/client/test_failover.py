"""When partitions change hands, and connections break at the worst moment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio.testing

from tests.client.helpers import numbered
from tests.client.scripted_cluster import TOPIC, ScriptedCluster, Trouble, open_scripted_cluster
from tidemark.client import (
    Client,
    ClientSettings,
    Consumer,
    DeliveryFuture,
    ErrorCode,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.client.blocking import read_batches
from tidemark.client.retries import Backoff
from tidemark.protocol.errors import CorruptBatch

QUICK = ClientSettings(
    backoff=Backoff(initial_seconds=0.001, max_seconds=0.01), retry_timeout_seconds=5
)


@asynccontextmanager
async def open_pair() -> AsyncIterator[tuple[ScriptedCluster, Client]]:
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=QUICK) as client,
    ):
        yield cluster, client


async def test_a_producer_follows_the_leader() -> None:
    async with open_pair() as (cluster, client):
        async with client.producer() as producer:
            for index in range(20):
                if index % 5 == 0:
                    cluster.elect(2 if cluster.leader == 1 else 1)
                await (await producer.send(TOPIC, b"%d" % index)).wait()
        assert cluster.values == numbered(20)


async def test_a_producer_that_is_told_who_leads_goes_there_at_once() -> None:
    patient = ClientSettings(backoff=Backoff(initial_seconds=30, max_seconds=30))
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=patient) as client,
        client.producer() as producer,
    ):
        await (await producer.send(TOPIC, b"0")).wait()
        cluster.tells_leader = True
        asked = cluster.asked_for_metadata
        with trio.fail_after(20):
            for index in range(1, 10):
                cluster.elect(2 if cluster.leader == 1 else 1)
                await (await producer.send(TOPIC, b"%d" % index)).wait()
        assert cluster.values == numbered(10)
        assert cluster.asked_for_metadata == asked


async def test_after_a_lost_connection_the_new_leader_is_asked_for_first() -> None:
    quick = ClientSettings(backoff=Backoff(initial_seconds=0.001, max_seconds=20))
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=quick) as client,
        client.producer(batch_bytes=1) as producer,
    ):
        await (await producer.send(TOPIC, b"0")).wait()
        cluster.metadata_seconds, cluster.troubles = 0.2, ["lost before"]
        cluster.elect(2)
        with trio.fail_after(10):
            futures = [await producer.send(TOPIC, value) for value in numbered(1, 20)]
            await trio.sleep(0.1)
            futures.append(await producer.send(TOPIC, b"20"))
            await producer.flush()
        assert cluster.values == numbered(21)
        old = cluster.asked_to_produce.index(2)
        assert cluster.asked_to_produce[old:] == [2] * 20
        # What was in flight when the connection was lost, and nothing since.
        assert old <= 2


async def test_metadata_that_does_not_come_holds_no_record_up_for_long() -> None:
    quick = ClientSettings(backoff=Backoff(initial_seconds=0.001, max_seconds=0.2))
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=quick) as client,
        client.producer() as producer,
    ):
        await (await producer.send(TOPIC, b"0")).wait()
        cluster.metadata_seconds, cluster.troubles = 20, ["lost before"]
        with trio.fail_after(10):
            await (await producer.send(TOPIC, b"1")).wait()
        assert cluster.values == numbered(2)


async def test_what_comes_back_too_late_is_not_sent_again() -> None:
    async with open_pair() as (cluster, client):
        async with client.producer(delivery_timeout_seconds=0.1) as producer:
            await (await producer.send(TOPIC, b"0")).wait()
            cluster.produce_seconds, cluster.tells_leader = 0.3, True
            cluster.elect(2)
            late = await producer.send(TOPIC, b"1")
            with (
                trio.fail_after(20),
                pytest.raises(RequestError, match=r"REQUEST_TIMED_OUT.*NOT_LEADER_OR_FOLLOWER"),
            ):
                await late.wait()
        assert cluster.values == numbered(1)


async def test_a_consumer_follows_the_leader() -> None:
    async with (
        open_pair() as (cluster, client),
        client.producer() as producer,
        client.consumer(TOPIC) as consumer,
    ):
        for index in range(10):
            await (await producer.send(TOPIC, b"%d" % index)).wait()
            with trio.fail_after(20):
                record = await anext(consumer)
            assert (record.value, record.leader_epoch) == (b"%d" % index, cluster.epoch)
            cluster.elect(2 if index % 2 else 1)


async def test_an_election_that_keeps_the_leader_is_learnt_from_the_fence() -> None:
    async with (
        open_pair() as (cluster, client),
        client.producer() as producer,
        client.consumer(TOPIC) as consumer,
    ):
        await producer.send(TOPIC, b"0")
        await anext(consumer)
        cluster.elect(cluster.leader)
        await producer.send(TOPIC, b"1")
        with trio.fail_after(20):
            assert (await anext(consumer)).value == b"1"


@pytest.mark.parametrize(
    "trouble",
    [
        "lost before",
        "lost after",
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
async def test_what_may_pass_is_repeated_until_it_is_stored_once(trouble: Trouble) -> None:
    async with open_pair() as (cluster, client):
        async with client.producer(batch_bytes=1) as producer:
            await (await producer.send(TOPIC, b"0")).wait()
            cluster.troubles = [trouble] * 3
            futures = [await producer.send(TOPIC, value) for value in numbered(1, 20)]
        assert cluster.values == numbered(20)
        assert [future.result().offset for future in futures] == list(range(1, 20))


async def test_a_refusal_in_a_row_of_batches_fails_only_its_own() -> None:
    async with open_pair() as (cluster, client):
        async with client.producer(batch_bytes=1) as producer:
            await (await producer.send(TOPIC, b"0")).wait()
            cluster.troubles = [ErrorCode.INVALID_RECORD]
            futures = [await producer.send(TOPIC, value) for value in numbered(1, 10)]
        with pytest.raises(RequestError, match="INVALID_RECORD: t-0"):
            futures[0].result()
        assert cluster.values == [b"0", *numbered(2, 10)]


async def test_leaving_with_an_error_while_an_answer_is_due_ends_quietly() -> None:
    async with open_pair() as (cluster, client):
        cluster.troubles = [ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000
        futures: list[DeliveryFuture] = []

        async def fail() -> None:
            async with client.producer() as producer:
                futures.append(await producer.send(TOPIC, b"x"))
                await trio.sleep(0.01)
                raise KeyError

        with pytest.raises(KeyError):
            await fail()
        with pytest.raises(RequestError, match="closed before"):
            futures[0].result()
        assert cluster.values == []


async def test_a_full_buffer_holds_every_sender_back_until_there_is_room() -> None:
    async with open_pair() as (cluster, client):
        cluster.troubles = [ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(20):
                await producer.send(TOPIC, bytes(100))
                sent += 1

        async with client.producer(buffer_bytes=2000) as producer, trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(send)
            await trio.sleep(0.05)
            assert sent == 2000 // 116
            cluster.troubles.clear()
        assert len(cluster.values) == 40


async def test_offsets_are_asked_of_the_new_leader() -> None:
    async with open_pair() as (cluster, client):
        here = TopicPartition(TOPIC, 0)
        assert await client.admin.end_offsets([here]) == {here: 0}
        cluster.elect(2)
        assert await client.admin.end_offsets([here]) == {here: 0}


async def test_a_range_on_a_plain_socket_is_read_from_the_new_leader() -> None:
    async with open_pair() as (cluster, client):
        async with client.producer() as producer:
            await producer.send(TOPIC, b"0")
        cluster.elect(2)

        def read() -> int:
            here = TopicPartition(TOPIC, 0)
            parts = read_batches(cluster.bootstrap, here, 0, 1, settings=QUICK)
            return sum(len(part.data) for part in parts)

        assert await trio.to_thread.run_sync(read) > 0


async def test_what_lasts_too_long_is_raised_in_the_end() -> None:
    impatient = ClientSettings(
        backoff=Backoff(initial_seconds=0.001, max_seconds=0.01), retry_timeout_seconds=0.1
    )
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=impatient) as client,
        client.consumer(TOPIC) as consumer,
    ):
        cluster.leader = -1
        for _ in range(2):
            with trio.fail_after(20), pytest.raises(RequestError, match=r"LEADER.*t-0"):
                await anext(consumer)
        cluster.elect(2)
        cluster.troubles.clear()
        with trio.fail_after(20):
            async with client.producer() as producer:
                await (await producer.send(TOPIC, b"x")).wait()
            assert await until_one(consumer) == b"x"


async def until_one(consumer: Consumer) -> bytes | None:
    """What is read as soon as that is possible again."""
    while True:
        with suppress(RequestError):
            return (await anext(consumer)).value


async def test_an_answer_that_comes_when_all_of_it_was_read_elsewhere_is_dropped() -> None:
    """Its broker led before and leads again, and another one in between."""
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=QUICK) as client,
        client.producer() as producer,
    ):
        for value in (b"0", b"1"):
            await (await producer.send(TOPIC, value)).wait()
        cluster.holds_fetches.add(1)
        with trio.fail_after(20):
            async with client.consumer(TOPIC) as consumer:
                await cluster.held.wait()
                cluster.elect(2)
                await client._network.refresh()
                values = [(await anext(consumer)).value for _ in range(2)]
                cluster.elect(1)
                await client._network.refresh()
                cluster.holds_fetches.clear()
                cluster.let_go.set()
                await trio.sleep(0.1)
                await (await producer.send(TOPIC, b"2")).wait()
                values.append((await anext(consumer)).value)
    assert values == [b"0", b"1", b"2"]


async def test_a_damaged_batch_is_an_error_until_it_is_passed_over() -> None:
    async with open_pair() as (cluster, client):
        async with client.producer() as producer:
            for value in (b"0", b"1"):
                await (await producer.send(TOPIC, value)).wait()
        damaged = bytearray(cluster.batches[0])
        damaged[-1] ^= 1
        cluster.batches[0] = bytes(damaged)
        here = TopicPartition(TOPIC, 0)
        async with client.consumer(TOPIC, partition_bytes=1) as consumer:
            for _ in range(2):
                with trio.fail_after(10), pytest.raises(CorruptBatch, match="t-0 from offset 0"):
                    await anext(consumer)
                assert consumer.position(here) == 0
            await consumer.seek(here, 1)
            assert (await anext(consumer)).value == b"1"


@pytest.mark.parametrize("at", [-1, 16], ids=["a record", "the header"])
async def test_what_lies_before_a_damaged_batch_is_handed_out_first(at: int) -> None:
    async with open_pair() as (cluster, client):
        async with client.producer() as producer:
            for value in numbered(4):
                await (await producer.send(TOPIC, value)).wait()
        damaged = bytearray(cluster.batches[2])
        damaged[at] ^= 1
        cluster.damage = lambda batch: bytes(damaged) if batch == cluster.batches[2] else batch
        here = TopicPartition(TOPIC, 0)
        async with client.consumer(TOPIC) as consumer:
            with trio.fail_after(10):
                assert [(await anext(consumer)).value for _ in range(2)] == [b"0", b"1"]
                for _ in range(2):
                    with pytest.raises(CorruptBatch, match="t-0 from offset 2"):
                        await anext(consumer)
                    assert consumer.position(here) == 2
                await consumer.seek(here, 3)
                assert (await anext(consumer)).value == b"3"


async def test_a_leader_that_hangs_is_waited_for_no_longer_than_a_request() -> None:
    settings = ClientSettings(request_timeout_seconds=2, backoff=Backoff(initial_seconds=0.3))
    async with (
        open_scripted_cluster() as cluster,
        open_client(cluster.bootstrap, settings=settings) as client,
        client.producer() as producer,
    ):
        cluster.hangs.add(1)
        delivery = await producer.send(TOPIC, b"x")
        await trio.testing.wait_all_tasks_blocked(0.05)
        cluster.elect(2)
        began = trio.current_time()
        with trio.fail_after(10):
            await delivery.wait()
        assert trio.current_time() - began < 3.5
    assert cluster.values.count(b"x") == 1
