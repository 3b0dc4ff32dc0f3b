"""Settings that would end a background task, or have it wait for ever, are refused where given."""

import math
from typing import Any

import pytest

from tidemark.client import Client, ErrorCode, RequestError, TopicPartition
from tidemark.protocol.types import Offset


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fetch_max_wait_ms": 2**31}, "fetch_max_wait_ms is from 0 to 2147483647, not 2147483648"),
        ({"fetch_bytes": 0}, "fetch_bytes is from 1"),
        ({"fetch_min_bytes": -1}, "fetch_min_bytes is from 0"),
        ({"partition_bytes": 0}, "partition_bytes is from 1"),
        ({"prefetch_bytes": 0}, "prefetch_bytes is from 1"),
        ({"auto_commit_seconds": 0}, "auto_commit_seconds is from 0.001"),
        ({"group": ""}, "group is empty"),
        ({"group": "\ud800"}, "group is text that UTF-8 can say"),
        ({"group": "g", "instance_id": ""}, "instance_id is empty"),
        ({"group": "g", "heartbeat_seconds": math.nan}, "heartbeat_seconds is from 0.001 to"),
        ({"group": "g", "session_timeout_seconds": math.inf}, "session_timeout_seconds is from"),
        ({"group": "g", "rebalance_timeout_seconds": 0}, "rebalance_timeout_seconds is from"),
    ],
)
async def test_a_consumer_s_numbers(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client.consumer("t", **settings)


@pytest.mark.parametrize(
    "settings", [{"fetch_bytes": 1.5}, {"group": 5}, {"start": 1.5}, {"start": {"t": 0}}]
)
async def test_a_consumer_s_types(client: Client, settings: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        client.consumer("t", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"linger_ms": -1}, "linger_ms / 1000 is from 0"),
        ({"linger_ms": math.inf}, "linger_ms / 1000 is from 0"),
        ({"delivery_timeout_seconds": math.nan}, "delivery_timeout_seconds is at least 0, not nan"),
        ({"request_bytes_max": 0}, "request_bytes_max is from 1"),
        ({"transactional_id": ""}, "transactional_id is empty"),
        ({"transactional_id": "t", "transaction_timeout_seconds": 1e9}, "is from 0.001 to 2147484"),
    ],
)
async def test_a_producer_s_numbers(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client.producer(**settings)


async def test_a_producer_may_wait_for_ever_for_a_delivery(client: Client, topic: str) -> None:
    async with client.producer(delivery_timeout_seconds=math.inf) as producer:
        assert (await (await producer.send(topic, b"x")).wait()).offset == 0


async def test_a_name_that_cannot_be_is_not_asked_for_again(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        with pytest.raises(TypeError, match="a topic's name is a str, not b't'"):
            await producer.send(b"t", b"x")  # type: ignore[arg-type]  # the mistake
        with pytest.raises(Exception, match="surrogates not allowed"):
            await producer.send("\ud800", b"x")
        await producer.send(topic, b"x")
    # It asks for the metadata anew, of all topics that it has been asked for.
    with pytest.raises(RequestError) as raised:
        async with client.consumer(TopicPartition(topic, 9)):
            pass
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_partition_below_zero_is_refused(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    with pytest.raises(RequestError, match="has no partition -1"):
        async with client.consumer(TopicPartition(topic, -1)):
            pass


async def test_what_is_named_twice_is_read_once(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        await producer.send(topic, b"x")
    at = TopicPartition(topic, 0)
    for what in ([topic, topic], [at, at]):
        async with client.consumer(what, until_end=True) as consumer:
            assert [record.value async for record in consumer] == [b"x"]


async def test_a_commit_is_an_offset(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    here = TopicPartition(topic, 0)
    async with client.consumer(here, group=topic, auto_commit_seconds=None) as consumer:
        for offset in (-1, 2**63):
            with pytest.raises(ValueError, match="a committed offset is from 0 to"):
                await consumer.commit({here: Offset(offset)})
        with pytest.raises(TypeError, match="a committed offset is a whole number, not '7'"):
            await consumer.commit({here: "7"})  # type: ignore[dict-item]  # on purpose
