"""Settings that would end a background task, or have it wait for ever, are refused where given."""

import math
from typing import Any

import pytest

from tidemark.client import Client, ClientSettings, ErrorCode, RequestError, TopicPartition
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
        ({"group": "g", "session_timeout_seconds": 3}, r"heartbeat_seconds \(3\) is less than"),
        ({"group": "g" * 2**15}, "group has at most 32767 bytes, not 32768"),
        ({"instance_id": "i"}, "instance_id is a member's: say of which group"),
        ({"start": {TopicPartition("u", 0): 1}}, "start names u-0, which is not among what is"),
    ],
)
async def test_a_consumer_s_numbers(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client.consumer("t", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fetch_bytes": 1.5}, "fetch_bytes is a whole number, not 1.5"),
        ({"group": 5}, "group is a str, not 5"),
        ({"start": 1.5}, "a place, a word or a whole number, not 1.5"),
        ({"start": {"t": 0}}, "start is by TopicPartition, not by 't'"),
        ({"group": "g", "assignors": "range"}, r"names in a list, as \['range'\]"),
        ({"on_assigned": 5}, "on_assigned is a function, not 5"),
    ],
)
async def test_a_consumer_s_types(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        client.consumer("t", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"linger_ms": -1}, "linger_ms is from 0"),
        ({"linger_ms": math.inf}, "linger_ms is from 0"),
        ({"delivery_timeout_seconds": math.nan}, "delivery_timeout_seconds is at least 0, not nan"),
        ({"request_bytes_max": 0}, "request_bytes_max is from 1"),
        ({"batch_bytes": -1}, "batch_bytes is from 0"),
        ({"buffer_bytes": 0}, "buffer_bytes is from 1"),
        ({"max_in_flight": 0}, "max_in_flight is from 1"),
        ({"acks": 1.0}, 'acks is "all", 1 or 0, not 1.0'),
        ({"compression": 3}, "compression is one of none, gzip, snappy, lz4, zstd, not 3"),
        ({"transactional_id": ""}, "transactional_id is empty"),
        ({"transactional_id": "t", "transaction_timeout_seconds": 1e9}, "is from 0.001 to 2147484"),
    ],
)
async def test_a_producer_s_numbers(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client.producer(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"linger_ms": "5"}, "linger_ms is a number of milliseconds, not '5'"),
        ({"batch_bytes": "16k"}, "batch_bytes is a whole number, not '16k'"),
        ({"max_in_flight": "5"}, "max_in_flight is a whole number, not '5'"),
        ({"idempotent": "yes"}, "idempotent is True, False or None, not 'yes'"),
        ({"partitioner": None}, "partitioner is a function, not None"),
    ],
)
async def test_a_producer_s_types(client: Client, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        client.producer(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"client_id": 5}, "client_id is a str, not 5"),
        ({"client_id": "i" * 2**15}, "client_id has at most 32767 bytes, not 32768"),
        ({"rack": 5}, "rack is a str, not 5"),
        ({"sasl": "alice"}, "sasl is a tidemark.client.Sasl, not 'alice'"),
        ({"tls": True}, "tls is a tidemark.client.Tls, not True"),
        ({"backoff": 3}, "backoff is a Backoff, not 3"),
        ({"request_timeout_seconds": "10"}, "request_timeout_seconds is a number of seconds"),
        ({"request_timeout_seconds": 0}, "request_timeout_seconds is from 0.001"),
        ({"connect_timeout_seconds": -1}, "connect_timeout_seconds is from 0.001"),
        ({"retry_timeout_seconds": None}, "retry_timeout_seconds is a number of seconds"),
        ({"frame_bytes_max": 0}, "frame_bytes_max is from 1"),
    ],
)
def test_a_client_s_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ClientSettings(**settings)


async def test_a_producer_may_wait_for_ever_for_a_delivery(client: Client, topic: str) -> None:
    async with client.producer(delivery_timeout_seconds=math.inf) as producer:
        assert (await (await producer.send(topic, b"x")).wait()).offset == 0


async def test_a_name_that_cannot_be_is_not_asked_for_again(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        with pytest.raises(TypeError, match="a topic's name is a str, not b't'"):
            await producer.send(b"t", b"x")  # type: ignore[arg-type]  # the mistake
        with pytest.raises(ValueError, match="text that UTF-8 can say"):
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
