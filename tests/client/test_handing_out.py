"""What counts as handed out, and what is committed of it, where a consumer is used in odd ways."""

import pytest
import trio
import trio.testing

from tests.client.helpers import numbered, write
from tidemark.client import Client, RequestError, TopicPartition
from tidemark.protocol.types import Offset


@pytest.fixture
async def here(client: Client, topic: str) -> TopicPartition:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(10))
    return TopicPartition(topic, 0)


async def committed(client: Client, group: str, here: TopicPartition) -> int:
    return (await client.admin.list_group_offsets(group))[here].offset


async def test_what_was_not_handed_out_comes_once_though_asking_for_batches_was_cancelled(
    client: Client, here: TopicPartition
) -> None:
    async with client.consumer(here, until_end=True) as consumer:
        offsets = [(await anext(consumer)).offset for _ in range(3)]
        with trio.CancelScope() as scope:
            scope.cancel()
            await consumer.fetch_batches()
        assert consumer.done(here) == 2
        offsets += [record.offset async for record in consumer]
    assert offsets == list(range(10))


async def test_batches_after_records_are_fetched_anew_though_all_was_fetched(
    client: Client, here: TopicPartition
) -> None:
    async with client.consumer(here, until_end=True) as consumer:
        await anext(consumer)
        await trio.testing.wait_all_tasks_blocked(0.1)  # there is nothing more to be fetched
        with trio.fail_after(10):
            fetched = await consumer.fetch_batches()
        assert fetched is not None
        assert (fetched.fetch_offset, fetched.next_offset) == (1, 10)


async def test_what_was_committed_by_name_stays_so_when_the_block_fails(
    client: Client, here: TopicPartition, group: str
) -> None:
    async def commit_and_fail() -> None:
        async with client.consumer(here, group=group) as consumer:
            for _ in range(3):
                await anext(consumer)
            await consumer.commit()
            raise KeyError

    with pytest.raises(KeyError):
        await commit_and_fail()
    assert await committed(client, group, here) == 3


async def test_what_was_committed_stays_so_while_the_next_is_not_asked_for(
    client: Client, here: TopicPartition, group: str
) -> None:
    async with client.consumer(here, group=group, auto_commit_seconds=0.05) as consumer:
        record = await anext(consumer)
        await consumer.commit({here: Offset(record.offset + 1)})
        await trio.sleep(0.3)
        assert await committed(client, group, here) == 1
        several = await consumer.fetch()
        await consumer.commit()
        await trio.sleep(0.3)
        assert await committed(client, group, here) == 1 + len(several)


async def test_one_in_hand_is_not_committed_by_a_commit_before_it(
    client: Client, here: TopicPartition, group: str
) -> None:
    async with client.consumer(here, group=group, auto_commit_seconds=0.05) as consumer:
        for _ in range(3):
            await anext(consumer)
        await consumer.commit({here: Offset(2)})
        await trio.sleep(0.3)
        assert await committed(client, group, here) == 2


async def test_an_error_comes_again_until_something_is_done_about_it(
    client: Client, here: TopicPartition
) -> None:
    """Whoever goes on after it would wait for ever, or take it for the end."""
    await client.admin.delete_records({here: Offset(4)})
    async with client.consumer(here, start=2, until_end=True) as consumer:
        for _ in range(2):
            with trio.fail_after(10), pytest.raises(RequestError, match="OFFSET_OUT_OF_RANGE"):
                await anext(consumer)
        await consumer.seek(here, 8)
        assert [record.offset async for record in consumer] == [8, 9]


async def test_an_error_of_where_one_is_not_any_more_is_not_raised(
    client: Client, here: TopicPartition
) -> None:
    await client.admin.delete_records({here: Offset(4)})
    async with client.consumer(here, start=2) as consumer:
        await trio.testing.wait_all_tasks_blocked(0.2)  # it is known that there is no such offset
        await consumer.seek(here, 5)
        assert (await anext(consumer)).offset == 5
