"""The consumer against a real broker, reading for itself."""

from itertools import pairwise
from typing import Literal

import pytest
import trio

from tests.client.helpers import numbered, read_values, write
from tidemark.client import (
    AtTime,
    Client,
    ErrorCode,
    RequestError,
    Start,
    TopicPartition,
    open_client,
)
from tidemark.protocol.records.header import iter_headers
from tidemark.testing import BlockingCluster, open_cluster


async def test_everything_is_read_from_all_partitions_and_then_it_ends(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=3)
    for partition in range(3):
        await write(
            client, topic, numbered(10 * partition, 10 * partition + 10), partition=partition
        )
    async with client.consumer(topic, until_end=True) as consumer:
        assert consumer.assignment == {TopicPartition(topic, p) for p in range(3)}
        values = [record.value async for record in consumer]
    assert sorted(int(value or b"") for value in values) == list(range(30))


async def test_an_empty_topic_ends_at_once(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    with trio.fail_after(20):
        assert await read_values(client, topic) == []


async def test_what_is_written_after_the_start_is_beyond_the_end(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(5))
    async with client.consumer(topic, until_end=True) as consumer:
        await write(client, topic, numbered(5, 10))
        assert [record.value async for record in consumer] == numbered(5)


@pytest.mark.parametrize(
    ("start", "first"),
    [("beginning", 0), (4, 4), (-3, 7), (-300, 0), ("end", 10), (AtTime(1006), 6), (AtTime(0), 0)],
)
async def test_reading_begins_where_it_was_told_to(
    client: Client, topic: str, start: Start | str | int, first: int
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        for index, value in enumerate(numbered(10)):
            await producer.send(topic, value, timestamp_ms=1000 + index)
    async with client.consumer(topic, start=start, until_end=True) as consumer:
        assert consumer.position(TopicPartition(topic, 0)) == first
        assert [record.value async for record in consumer] == numbered(first, 10)


async def test_a_time_after_everything_is_the_end(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(3))
    async with client.consumer(topic, start=AtTime(2**40 * 10)) as consumer:
        assert consumer.position(TopicPartition(topic, 0)) == 3


async def test_each_partition_may_begin_somewhere_else(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    for partition in range(2):
        await write(client, topic, numbered(5), partition=partition)
    starts: dict[TopicPartition, Start | str | int] = {
        TopicPartition(topic, 0): 4,
        TopicPartition(topic, 1): "end",
    }
    async with client.consumer(list(starts), start=starts, until_end=True) as consumer:
        assert [record.value async for record in consumer] == [b"4"]


async def test_an_offset_in_a_partition_is_enough_for_a_client_that_knows_nothing_else(
    client: Client, topic: str, tidemark_session: BlockingCluster
) -> None:
    await client.admin.create_topic(topic, partitions=2)
    await write(client, topic, numbered(5), partition=1)
    partition = TopicPartition(topic, 1)
    async with (
        open_client(tidemark_session.bootstrap) as fresh,
        fresh.consumer(partition, start=3) as consumer,
    ):
        with trio.fail_after(20):
            assert [record.value for record in await consumer.fetch()] == [b"3", b"4"]


async def test_a_consumer_at_the_end_waits_for_what_comes(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.consumer(topic, start="end") as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(write, client, topic, numbered(3))
        assert [(await anext(consumer)).value for _ in range(3)] == numbered(3)


async def test_position_counts_what_was_handed_out(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    here = TopicPartition(topic, 0)
    async with client.consumer(topic) as consumer:
        for index in range(10):
            assert consumer.position(here) == index
            await anext(consumer)
        assert consumer.position(here) == 10
    with pytest.raises(KeyError):
        consumer.position(TopicPartition("other", 0))


async def test_seek_goes_back_and_forth(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    here = TopicPartition(topic, 0)
    async with client.consumer(topic) as consumer:
        assert [(await anext(consumer)).value for _ in range(5)] == numbered(5)
        await consumer.seek(here, 2)
        assert consumer.position(here) == 2
        assert [(await anext(consumer)).value for _ in range(3)] == numbered(2, 5)
        await consumer.seek(here, -1)
        assert (await anext(consumer)).value == b"9"


async def test_a_paused_partition_keeps_its_position(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    for partition in range(2):
        await write(client, topic, numbered(5), partition=partition)
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with client.consumer(topic) as consumer:
        while (await anext(consumer)).partition != 0:
            pass
        position = consumer.position(here)
        consumer.pause(here)
        await consumer.seek(there, 0)
        others = [await anext(consumer) for _ in range(5)]
        assert {record.partition for record in others} == {1}
        assert consumer.position(here) == position
        consumer.resume(here)
        rest = [(await anext(consumer)).value for _ in range(5 - position)]
        assert rest == numbered(position, 5)


async def test_what_is_in_hand_is_not_done_with_when_its_partition_is_paused(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(5))
    here = TopicPartition(topic, 0)
    async with client.consumer(topic) as consumer:
        record = await anext(consumer)
        consumer.pause(here)
        assert (consumer.done(here), consumer.position(here)) == (record.offset, 1)
        consumer.resume(here)
        several = [record, *await consumer.fetch()]
        consumer.pause(here)
        assert consumer.done(here) == 1
        assert consumer.position(here) == len(several)


async def test_fetch_gives_what_one_fetch_brought(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    async with client.consumer(topic, until_end=True) as consumer:
        first = await anext(consumer)
        rest = await consumer.fetch()
        assert [first.value, *(record.value for record in rest)] == numbered(10)
        assert await consumer.fetch() == []


async def test_batches_come_undecoded_and_in_order(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    for index in range(5):
        await write(client, topic, numbered(index, index + 2))
    async with client.consumer(topic, until_end=True) as consumer:
        headers = []
        while fetched := await consumer.fetch_batches():
            headers += [header for _, header in iter_headers(fetched.data)]
            assert fetched.next_offset == headers[-1].next_offset
    assert (headers[0].base_offset, headers[-1].next_offset) == (0, 10)
    for one, following in pairwise(headers):
        assert one.next_offset == following.base_offset


async def test_batches_after_single_records_begin_with_the_next_record(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    async with client.consumer(topic, until_end=True) as consumer:
        for _ in range(3):
            await anext(consumer)
        fetched = await consumer.fetch_batches()
        assert fetched is not None
        assert (fetched.fetch_offset, fetched.next_offset) == (3, 10)


async def test_a_position_out_of_range_is_an_error_that_says_what_there_is(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    here = TopicPartition(topic, 0)
    await client.admin.delete_records({here: 4})
    async with client.consumer(topic, start=2) as consumer:
        with pytest.raises(
            RequestError, match=r"no offset 2 \(the log is from 4 to 10\)"
        ) as caught:
            await anext(consumer)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        await consumer.seek(here, "beginning")
        assert (await anext(consumer)).value == b"4"


@pytest.mark.parametrize(("reset", "first"), [("beginning", 4), ("end", 10)])
async def test_or_reading_goes_on_where_it_was_told_to(
    client: Client, topic: str, reset: Literal["beginning", "end"], first: int
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    await client.admin.delete_records({TopicPartition(topic, 0): 4})
    async with (
        client.consumer(topic, start=2, out_of_range=reset) as consumer,
        trio.open_nursery() as nursery,
    ):
        if reset == "end":
            await trio.sleep(0.1)
        nursery.start_soon(write, client, topic, numbered(10, 12))
        assert (await anext(consumer)).value == b"%d" % first


@pytest.mark.parametrize(("reset", "left"), [("beginning", 0), ("end", 0), ("end", 6)])
async def test_where_it_was_told_to_go_on_may_be_the_end(
    client: Client, topic: str, reset: Literal["beginning", "end"], left: int
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    await client.admin.delete_records({TopicPartition(topic, 0): 10 - left})
    with trio.fail_after(10):
        async with client.consumer(topic, start=2, out_of_range=reset, until_end=True) as consumer:
            assert [record.offset async for record in consumer] == []


async def test_another_task_may_seek_to_the_end(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    here = TopicPartition(topic, 0)
    await write(client, topic, numbered(10))
    async with client.consumer(topic, until_end=True) as consumer, trio.open_nursery() as nursery:
        consumer.pause(here)

        async def skip() -> None:
            await trio.testing.wait_all_tasks_blocked(0.1)
            await consumer.seek(here, "end")

        nursery.start_soon(skip)
        with trio.fail_after(10):
            assert [record.offset async for record in consumer] == []


async def test_small_fetches_are_put_together(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(batch_bytes=1000) as producer:
        for value in numbered(2000):
            await producer.send(topic, value)
    async with client.consumer(
        topic, until_end=True, partition_bytes=1, prefetch_bytes=1
    ) as consumer:
        assert [record.value async for record in consumer] == numbered(2000)


async def test_a_topic_that_is_not_there_is_an_error(client: Client, topic: str) -> None:
    with trio.fail_after(10), pytest.raises(RequestError, match=f"UNKNOWN.*topic {topic}"):
        async with client.consumer(topic):
            pass
    await client.admin.create_topic(topic, partitions=1)
    with trio.fail_after(10), pytest.raises(RequestError, match="no partition 3"):
        async with client.consumer(TopicPartition(topic, 3)):
            pass


async def test_partitions_that_a_topic_gets_are_read_from_their_beginning(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.consumer(topic, start="end") as consumer:
        await client.admin.create_partitions(topic, 2)
        await write(client, topic, [b"new"], partition=1)
        with trio.fail_after(20):
            record = await anext(consumer)
        assert (record.partition, record.value) == (1, b"new")


async def test_a_cancelled_wait_loses_no_record(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(200))
    values: list[bytes | None] = []
    async with client.consumer(topic, partition_bytes=300) as consumer:
        while len(values) < 200:
            with trio.move_on_after(0.001):
                while True:
                    values.append((await anext(consumer)).value)
    assert values == numbered(200)


async def test_a_restart_of_the_broker_is_waited_out(topic: str) -> None:
    async with open_cluster() as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        await write(client, topic, numbered(5))
        async with client.consumer(topic) as consumer:
            assert [(await anext(consumer)).value for _ in range(5)] == numbered(5)
            await cluster.restart()
            await write(client, topic, numbered(5, 10))
            with trio.fail_after(10):
                assert [(await anext(consumer)).value for _ in range(5)] == numbered(5, 10)


async def test_topics_and_partitions_are_not_mixed(client: Client) -> None:
    with pytest.raises(ValueError, match="not both"):
        client.consumer(["t", TopicPartition("u", 0)])
    with pytest.raises(ValueError, match="not both"):
        client.consumer([])


async def test_a_seek_with_a_full_buffer_makes_room(client: Client, topic: str) -> None:
    """All that was fetched ahead is of no use then, and nobody takes it out one by one."""
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, [b"x" * 10_000] * 100)
    at = TopicPartition(topic, 0)
    async with client.consumer(topic, prefetch_bytes=50_000, partition_bytes=200_000) as consumer:
        assert (await anext(consumer)).offset == 0
        await trio.sleep(0.3)  # it fetches ahead until the buffer is full
        await consumer.seek(at, 5)
        await trio.testing.wait_all_tasks_blocked(0.05)  # the fetcher finds no room yet
        with trio.fail_after(10):
            assert (await anext(consumer)).offset == 5
