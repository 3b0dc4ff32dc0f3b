"""Which topics' metadata is asked for: of those in use, and of others no longer than is said."""

from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from random import Random

import pytest
import trio
from trio.testing import MockClock

from tests.client.helpers import read_values, until
from tidemark.client import (
    Client,
    ClientSettings,
    Producer,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.client.background import Signal
from tidemark.client.pace import Pace
from tidemark.client.retries import Backoff
from tidemark.client.used_topics import UsedTopics
from tidemark.protocol.messages.metadata import MetadataResponse
from tidemark.testing import BlockingCluster


def test_what_was_asked_about_is_kept_for_a_time() -> None:
    topics = UsedTopics(300)
    topics.asked(["a", "b"], 0)
    topics.asked(["b"], 100)
    assert [topics.names(now) for now in (300, 301, 400, 401)] == [["a", "b"], ["b"], ["b"], []]


def test_what_is_used_is_kept_as_long_as_it_is() -> None:
    topics, used = UsedTopics(300), ["a", "b"]
    topics.asked(["b", "c"], 0)
    with topics.using(lambda: used):
        assert topics.names(0) == ["b", "c", "a"]
        topics.forget("b")
        assert topics.names(1000) == ["a", "b"]
        used.remove("a")
        assert topics.names(1000) == ["b"]
    assert topics.names(1000) == []


async def test_pauses_grow_until_something_else_is_missing(autojump_clock: MockClock) -> None:
    pace = Pace(Backoff(initial_seconds=0.05, max_seconds=1, jitter=0), Random(1))
    taken = []
    for step in range(80):
        if step in (50, 70):
            pace.found() if step == 50 else pace.quicken()
        before = trio.current_time()
        await pace.pause()
        taken.append(round(trio.current_time() - before, 3))
    growing = [0.1] * 8 + [0.2] * 8 + [0.4] * 8 + [0.8] * 8 + [1.0] * 18
    assert taken[:50] == growing
    assert taken[50:70] == growing[:20]
    assert taken[70:] == growing[:10]


async def test_who_waits_long_is_told_of_what_is_missing_now(autojump_clock: MockClock) -> None:
    pace = Pace(Backoff(jitter=0), Random(1))
    for _ in range(60):
        await pace.pause()
    before = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pace.pause)
        await trio.sleep(0.5)
        pace.quicken()
    assert trio.current_time() - before == 0.5


class Asked:
    """A client for which nothing is idle for long, and which topics it asked about last."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.network = client._network
        self._ask = self.network.ask_metadata
        self.topics: list[str] = []
        # What it is asked for is asked of the broker all the same.
        self.network.ask_metadata = self._noted  # type: ignore[method-assign]

    async def _noted(self, topics: Collection[str] | None, *, may_create: bool) -> MetadataResponse:
        self.topics = list(topics or ())
        return await self._ask(topics, may_create=may_create)

    async def in_refresh(self) -> list[str]:
        """Which topics it asks about when it is time for other metadata."""
        await trio.sleep(0.001)  # for time to pass, however coarse the clock
        await self.network.refresh()
        return self.topics


@pytest.fixture
async def asked(tidemark_session: BlockingCluster) -> AsyncIterator[Asked]:
    settings = ClientSettings(
        metadata_max_idle_seconds=0, retry_timeout_seconds=0.5, unknown_topic_seconds=0.1
    )
    async with open_client(tidemark_session.bootstrap, settings=settings) as client:
        yield Asked(client)


async def test_a_topic_that_is_not_sent_to_any_more_is_forgotten(asked: Asked, topic: str) -> None:
    await asked.client.admin.create_topic(topic, partitions=1)
    async with asked.client.producer() as producer:
        for turn in range(3):
            stored = await (await producer.send(topic, b"%d" % turn)).wait()
            assert stored.offset == turn
            assert await asked.in_refresh() == []
            assert topic not in asked.network.view.topics
    assert await read_values(asked.client, topic) == [b"0", b"1", b"2"]


async def test_a_topic_that_something_is_to_be_sent_to_is_not_forgotten(
    asked: Asked, topic: str
) -> None:
    await asked.client.admin.create_topic(topic, partitions=1)
    async with asked.client.producer(linger_ms=60_000) as producer:
        future = await producer.send(topic, b"x")
        assert await asked.in_refresh() == [topic]
        await producer.flush()
        future.result()
        assert await asked.in_refresh() == []


async def _aborted(producer: Producer, topic: str) -> None:
    with suppress(ZeroDivisionError):
        async with producer.transaction():
            await producer.send(topic, b"aborted")
            raise ZeroDivisionError


async def test_a_topic_is_known_again_by_another_transaction(asked: Asked, topic: str) -> None:
    await asked.client.admin.create_topic(topic, partitions=1)
    async with asked.client.producer(transactional_id=topic) as producer:
        async with producer.transaction():
            await producer.send(topic, b"first")
        await _aborted(producer, topic)
        assert await asked.in_refresh() == []
        async with producer.transaction():
            await producer.send(topic, b"second")
    async with asked.client.consumer(topic, isolation="read_committed") as consumer:
        assert [(await anext(consumer)).value for _ in range(2)] == [b"first", b"second"]


@pytest.mark.parametrize("what", ["topic", "partition", "group"])
async def test_what_a_consumer_reads_is_known_as_long_as_it_is_open(
    asked: Asked, topic: str, what: str
) -> None:
    await asked.client.admin.create_topic(topic, partitions=1)
    async with asked.client.producer() as producer:
        await producer.send(topic, b"x")
    async with asked.client.consumer(
        TopicPartition(topic, 0) if what == "partition" else topic,
        group=topic if what == "group" else None,
    ) as consumer:
        await anext(consumer)
        assert await asked.in_refresh() == [topic]
        assert await asked.in_refresh() == [topic]
    assert await asked.in_refresh() == []


async def test_who_leads_a_group_knows_the_topics_of_the_others(
    asked: Asked, tidemark_session: BlockingCluster, topic: str
) -> None:
    other = f"{topic}-other"
    for name in (topic, other):
        await asked.client.admin.create_topic(name, partitions=1)
        async with asked.client.producer() as producer:
            await producer.send(name, b"x")
    async with (
        asked.client.consumer(topic, group=topic, heartbeat_seconds=0.05) as consumer,
        open_client(tidemark_session.bootstrap) as another,
    ):
        await anext(consumer)
        async with another.consumer(other, group=topic) as others:
            await anext(others)
            assert sorted(await asked.in_refresh()) == [topic, other]
            assert sorted(await asked.in_refresh()) == [topic, other]


async def test_a_topic_that_the_client_deletes_is_not_asked_for(asked: Asked, topic: str) -> None:
    await asked.client.admin.create_topic(topic, partitions=1)
    await asked.client.admin.delete_topic(topic)
    await asked.network.refresh()
    assert asked.topics == []


async def test_what_has_become_of_a_deleted_topic_is_not_asked_while_nobody_reads_it(
    asked: Asked, tidemark_session: BlockingCluster, topic: str
) -> None:
    """It was, eleven times a second, for as long as the consumer was open."""
    await asked.client.admin.create_topic(topic, partitions=2)
    async with asked.client.consumer(topic) as consumer:
        async with open_client(tidemark_session.bootstrap) as another:
            await another.admin.delete_topic(topic)
        readings = consumer._readings
        with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"), trio.fail_after(30):
            await anext(consumer)

        async def is_given_up() -> bool:
            return all(reading.is_failed for reading in readings.by_partition.values())

        await until(is_given_up)
        readings._stale = Signal()
        await asked.network.refresh()
        assert not readings._stale._event.is_set()
