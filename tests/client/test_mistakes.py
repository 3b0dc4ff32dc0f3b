"""What a caller gets wrong is told at once, in words that say what is right."""

import asyncio
from typing import Any

import pytest

from tests.client.helpers import read
from tidemark.client import Client, Isolation, ReadLevel, TopicPartition, open_client
from tidemark.client.blocking import open_client as open_blocking_client
from tidemark.testing import BlockingCluster

# Any: these are the types that the signatures do not allow.


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"value": "text"}, "value is bytes or None, not str: encode it"),
        ({"value": {"a": 1}}, "value is bytes or None, not dict"),
        ({"value": b"x", "key": "k"}, "key is bytes or None, not str: encode it"),
        ({"value": b"x", "headers": ["ab"]}, "headers are pairs of a str and bytes, not 'ab'"),
        ({"value": b"x", "headers": {"a": "b"}}, "header a is bytes or None, not str"),
        ({"value": b"x", "headers": 5}, "headers are pairs of a str and bytes, not 5"),
        ({"value": b"x", "partition": "0"}, "a partition is a whole number, not '0'"),
        ({"value": b"x", "timestamp_ms": 1.5}, "timestamp is a whole number of ms, not 1.5"),
    ],
)
async def test_what_is_no_bytes_is_refused_and_the_others_are_sent(
    client: Client, topic: str, record: dict[str, Any], message: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(linger_ms=60_000) as producer:
        await producer.send(topic, b"before")
        with pytest.raises(TypeError, match=message):
            await producer.send(topic, **record)
        await producer.send(topic, bytearray(b"after"), memoryview(b"key"))  # type: ignore[arg-type]  # not bytes, on purpose
    assert [record.value for record in await read(client, topic)] == [b"before", b"after"]


async def test_a_result_that_is_not_there_yet_is_to_be_waited_for(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(linger_ms=60_000) as producer:
        delivery = await producer.send(topic, b"x")
        assert not delivery.is_done
        with pytest.raises(ValueError, match="not settled yet: wait for it, or flush"):
            delivery.result()
    assert delivery.result().offset == 0


async def test_headers_may_be_a_mapping(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        await producer.send(topic, b"x", headers={"a": b"1", "b": None})
    (record,) = await read(client, topic)
    assert record.headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"isolation": "committed"}, '"read_uncommitted" or "read_committed", not \'committed\''),
        ({"out_of_range": "latest"}, '"error", "beginning" or "end", not \'latest\''),
        ({"read_level": "fresh"}, "one of committed, strict, two-step, replica, not 'fresh'"),
        ({"start": "first"}, '"beginning", "end" or a number, not \'first\''),
    ],
)
async def test_a_word_that_a_consumer_does_not_know_is_refused_with_those_it_does(
    client: Client, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        client.consumer("t", **settings)


async def test_what_is_read_is_named_by_topics_or_partitions(client: Client) -> None:
    with pytest.raises(TypeError, match=r"TopicPartition, not \('t', 0\)"):
        client.consumer(["t", ("t", 0)])  # type: ignore[list-item]  # the mistake
    for nothing in (None, 5, b"t"):
        with pytest.raises(TypeError, match="a topic's name or a TopicPartition, not"):
            client.consumer(nothing)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="a partition is a whole number, not '0'"):
        client.consumer(TopicPartition("t", "0"))  # type: ignore[arg-type]  # the mistake


async def test_a_callback_is_an_async_function(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    with pytest.raises(TypeError, match=r"are async functions, and .*<lambda>.* is none"):
        async with client.consumer(topic, group=topic, on_assigned=lambda _: None) as consumer:  # type: ignore[arg-type,return-value]  # the mistake
            await anext(consumer)


async def test_offsets_are_committed_in_the_name_of_a_member(client: Client, topic: str) -> None:
    done = {TopicPartition(topic, 0): 1}
    async with client.producer(transactional_id=topic) as producer:
        with pytest.raises(
            TypeError, match="group is a consumer's group_membership, not 'readers'"
        ):
            async with producer.transaction():
                await producer.send_offsets_to_transaction(done, "readers")  # type: ignore[arg-type]  # the mistake


async def test_a_codec_goes_by_its_name(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(compression="zstd") as producer:
        await producer.send(topic, b"x" * 1000)
    async with client.consumer(
        TopicPartition(topic, 0), isolation="read_committed", until_end=True
    ) as consumer:
        assert [record.value async for record in consumer] == [b"x" * 1000]
    with pytest.raises(ValueError, match="one of none, gzip, snappy, lz4, zstd, not 'zip'"):
        client.producer(compression="zip")
    client.consumer(topic, isolation=Isolation.READ_COMMITTED, read_level=ReadLevel.STRICT)


def test_who_runs_asyncio_is_told_of_the_blocking_twin() -> None:
    async def main() -> None:
        async with open_client("127.0.0.1:1"):
            raise AssertionError("it cannot run here")

    with pytest.raises(RuntimeError, match=r"under trio: use tidemark\.client\.blocking"):
        asyncio.run(main())


def test_the_blocking_twin_has_a_rack_too(tidemark_session: BlockingCluster, topic: str) -> None:
    with open_blocking_client(tidemark_session.bootstrap, rack="a") as client:
        client.run(client.admin.create_topic, topic)
        with client.producer() as producer:
            producer.send_all(topic, [(None, b"x")])
        with client.consumer(topic, until_end=True) as consumer:
            assert [record.value for record in consumer] == [b"x"]
