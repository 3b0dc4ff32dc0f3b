"""Clients, producers and consumers after their block, and two tasks that use one of them."""

import os
import signal
from collections.abc import Callable

import pytest
import trio

from tests.client.helpers import numbered, write
from tidemark.client import Client, open_client
from tidemark.client.blocking import open_client as open_script_client
from tidemark.client.routes import Routes
from tidemark.testing import BlockingCluster


async def test_a_closed_producer_takes_nothing(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as knows_it, client.producer() as does_not:
        await knows_it.send(topic, b"x")
    for producer in (knows_it, does_not):
        with pytest.raises(trio.ClosedResourceError, match="the producer is closed"):
            await producer.send(topic, b"x")


async def test_a_closed_producer_begins_no_transaction(client: Client, topic: str) -> None:
    async with client.producer(transactional_id=topic) as producer:
        pass
    with pytest.raises(trio.ClosedResourceError):
        async with producer.transaction():
            raise AssertionError("it has begun")


async def test_a_closed_client_says_so(tidemark_session: BlockingCluster) -> None:
    async with open_client(tidemark_session.bootstrap) as client:
        pass
    with pytest.raises(trio.ClosedResourceError, match="the client is closed"):
        await client.admin.list_topics()
    with pytest.raises(trio.ClosedResourceError, match="the client is closed"):
        async with client.producer():
            pass


def test_a_closed_client_of_a_script_says_so(tidemark_session: BlockingCluster) -> None:
    with open_script_client(tidemark_session.bootstrap) as client:
        pass
    with pytest.raises(trio.ClosedResourceError, match="the client is closed"):
        client.run(client.admin.list_topics)
    with pytest.raises(trio.ClosedResourceError, match="the client is closed"), client.producer():
        pass


async def test_a_closed_consumer_gives_nothing_and_commits_nothing(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(3))
    async with client.consumer(topic, group=group) as consumer:
        assert (await anext(consumer)).offset == 0
    for use in (consumer.__anext__, consumer.fetch, consumer.fetch_batches, consumer.commit):
        with pytest.raises(trio.ClosedResourceError, match="the consumer is closed"):
            await use()
    assert await client.admin.list_group_offsets(group)


async def test_who_waits_for_a_record_hears_that_the_consumer_was_closed(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    heard = trio.Event()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            async with client.consumer(topic) as consumer:

                async def wait() -> None:
                    with pytest.raises(trio.ClosedResourceError):
                        await anext(consumer)
                    heard.set()

                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked(0.1)
            await heard.wait()


async def test_two_tasks_cannot_read_with_one_consumer(client: Client, topic: str) -> None:
    """What one has in hand would be committed when the other asks; and one could wait for ever."""
    await client.admin.create_topic(topic, partitions=1)
    async with client.consumer(topic) as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(consumer.fetch)
        await trio.testing.wait_all_tasks_blocked(0.1)
        with pytest.raises(trio.BusyResourceError):
            await anext(consumer)
        await write(client, topic, [b"x"])


async def test_many_tasks_send_with_one_producer(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(buffer_bytes=500, batch_bytes=100) as producer:

        async def send(number: int) -> None:
            for part in range(20):
                await producer.send(topic, b"%d:%d" % (number, part))

        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(send, number)
    async with client.consumer(topic, until_end=True) as consumer:
        got = [record.value async for record in consumer]
    for number in range(10):
        mine = [value for value in got if value and value.startswith(b"%d:" % number)]
        assert mine == [b"%d:%d" % (number, part) for part in range(20)]


async def test_who_waits_for_a_topic_hears_that_the_producer_was_closed(
    client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, may_go_on, find = trio.Event(), trio.Event(), Routes.find

    async def find_late(routes: Routes, name: str) -> None:
        looks.set()
        await may_go_on.wait()
        await find(routes, name)

    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError, match="the producer is closed"):
            await producer.send(topic, b"x")

    await client.admin.create_topic(topic, partitions=1)
    monkeypatch.setattr(Routes, "find", find_late)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            async with client.producer() as producer:
                nursery.start_soon(send)
                await looks.wait()
            may_go_on.set()


def test_a_client_that_was_forked_says_so(tidemark_session: BlockingCluster) -> None:
    with open_script_client(tidemark_session.bootstrap) as client:
        said = forked(lambda: client.run(client.admin.list_topics))
        assert said == "RuntimeError('a client does not outlive a fork: open one in each process')"
        assert client.run(client.admin.list_topics) is not None


def forked(action: Callable[[], object]) -> str:
    """What that raises in a process that was forked from this one."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # ends it if it hangs
        try:
            action()
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read, "rb") as said:
        return said.read().decode()
