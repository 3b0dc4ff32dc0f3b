"""What `on_assigned` and `on_revoked` raise is the caller's, whatever its type."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from tests.client.groups import QUICK, wait_assigned
from tests.client.helpers import numbered, write
from tidemark.client import Client, ErrorCode, RequestError, TopicPartition, blocking
from tidemark.protocol.errors import MalformedMessage
from tidemark.testing import BlockingCluster

ERRORS = (
    OSError("no room to keep its state"),
    RequestError(ErrorCode.REBALANCE_IN_PROGRESS, "of another group"),
    RequestError(ErrorCode.ILLEGAL_GENERATION, "of a commit"),
    MalformedMessage("its state"),
    KeyError("state"),
)
Refusal = Callable[[frozenset[TopicPartition]], Awaitable[None]]


def refusing(error: Exception, cause: Exception, calls: list[int]) -> Refusal:
    async def refuse(partitions: frozenset[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint()
        calls.append(len(partitions))
        raise error from cause

    return refuse


@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_what_on_assigned_raises_reaches_the_caller_as_it_is(
    client: Client, topic: str, group: str, error: Exception
) -> None:
    await client.admin.create_topic(topic, partitions=4)
    await write(client, topic, numbered(5))
    calls: list[int] = []
    cause = ValueError("the reason")
    with trio.fail_after(10), pytest.raises(type(error)) as caught:
        async with client.consumer(
            topic, group=group, on_assigned=refusing(error, cause, calls), **QUICK
        ):
            await trio.sleep_forever()
    assert caught.value is error
    assert error.__cause__ is cause
    assert calls == [4]
    # Nothing is known of what was refused: where the next one begins is not for this one to say.
    assert await client.admin.list_group_offsets(group) == {}


async def test_nothing_is_handed_out_while_on_assigned_runs(
    client: Client, topic: str, group: str
) -> None:
    """It may load what the records are for, or seek."""
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(5))
    began, ended = trio.Event(), trio.Event()

    async def prepare(partitions: frozenset[TopicPartition]) -> None:
        began.set()
        await trio.sleep(0.5)
        for each in partitions:
            await consumer.seek(each, 3)
        ended.set()

    with trio.fail_after(20):
        async with client.consumer(topic, group=group, on_assigned=prepare, **QUICK) as consumer:
            record = await consumer.__anext__()
            assert began.is_set()
            assert ended.is_set()
    assert record.offset == 3


@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_what_on_revoked_raises_reaches_the_caller_as_it_is(
    client: Client, topic: str, group: str, error: Exception
) -> None:
    await client.admin.create_topic(topic, partitions=4)
    calls: list[int] = []
    is_in = trio.Event()

    async def join_later() -> None:
        await is_in.wait()
        async with client.consumer(topic, group=group, **QUICK) as other:
            await wait_assigned(other, 4)
        nursery.cancel_scope.cancel()

    async def take_part() -> None:
        async with client.consumer(
            topic, group=group, on_revoked=refusing(error, error, calls), **QUICK
        ) as consumer:
            await wait_assigned(consumer, 4)
            is_in.set()
            await trio.sleep_forever()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(join_later)
            with pytest.raises(type(error)) as caught:
                await take_part()
    assert caught.value is error
    assert calls == [4]


async def test_what_a_callback_raises_reaches_who_reads_from_a_thread(
    tidemark_session: BlockingCluster, client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic)
    error = OSError("no room to keep its state")

    def read() -> None:
        with (
            blocking.open_client(tidemark_session.bootstrap) as blocked,
            blocked.consumer(
                topic, group=group, on_assigned=refusing(error, error, []), **QUICK
            ) as consumer,
        ):
            consumer.fetch()

    with trio.fail_after(20), pytest.raises(OSError, match="no room") as caught:
        await trio.to_thread.run_sync(read, abandon_on_cancel=True)
    assert caught.value is error


async def test_what_a_callback_raises_without_a_group_reaches_the_caller(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic)
    error = OSError("no room to keep its state")
    with pytest.raises(OSError, match="no room") as caught:
        async with client.consumer(topic, on_assigned=refusing(error, error, [])):
            pass
    assert caught.value is error
