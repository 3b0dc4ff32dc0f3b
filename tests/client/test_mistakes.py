"""What a caller gets wrong is told at once, in words that say what is right."""

import asyncio
from typing import Any

import pytest
import trio

from tests.client.helpers import read
from tidemark.client import Client, Isolation, ReadLevel, Sasl, TopicPartition, open_client
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


@pytest.mark.parametrize("name", [None, 5, b"t", ["t"]])
async def test_a_topic_is_named_by_a_str(client: Client, name: Any) -> None:
    told = "a topic's name is a str, not "
    async with client.producer() as producer:
        with pytest.raises(TypeError, match=told):
            await producer.send(name, b"x")
    for call in (client.admin.create_topic, client.admin.delete_topic, client.admin.describe_topic):
        with pytest.raises(TypeError, match=told):
            await call(name)


@pytest.mark.parametrize(
    ("name", "told"), [("\ud800", "text that UTF-8 can say"), ("x" * 40_000, "at most 32767 bytes")]
)
async def test_a_name_that_no_topic_can_have_is_told_of(
    client: Client, name: str, told: str
) -> None:
    async with client.producer() as producer:
        with pytest.raises(ValueError, match=f"a topic's name .*{told}"):
            await producer.send(name, b"x")
    with pytest.raises(ValueError, match=f"a topic's name .*{told}"):
        async with client.consumer(name):
            raise AssertionError("there is nothing to read")


async def test_a_list_of_topics_is_no_name(client: Client) -> None:
    with pytest.raises(TypeError, match=r"a list, as \['rides'\]"):
        await client.admin.describe_topics("rides")


async def test_partitions_and_places_are_named_as_such(client: Client, topic: str) -> None:
    admin = client.admin
    wrong: Any
    for wrong in ("t", [topic], [(topic, 0)]):
        with pytest.raises(TypeError, match="a partition is a TopicPartition, not"):
            await admin.end_offsets(wrong)
    partition = TopicPartition(topic, 0)
    place: Any = "last"
    with pytest.raises(TypeError, match=r"where to look is Beginning\(\), .*, not 'last'"):
        await admin.list_offsets({partition: place})
    with pytest.raises(ValueError, match='start is "beginning", "end" or a number'):
        await admin.resolve_offsets({partition: place})
    with pytest.raises(TypeError, match="an offset is a whole number, not 'last'"):
        await admin.delete_records({partition: place})


async def test_a_consumers_partitions_are_named_as_such(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    told = "a partition is a TopicPartition, not "
    wrong: Any
    async with client.consumer(TopicPartition(topic, 0), group=topic) as consumer:
        for wrong in (topic, (topic, 0), [TopicPartition(topic, 0)]):
            with pytest.raises(TypeError, match=told):
                consumer.pause(wrong)
            with pytest.raises(TypeError, match=told):
                consumer.resume(wrong)
            with pytest.raises(TypeError, match=told):
                await consumer.seek(wrong, 0)
        wrong = {(topic, 0): 1}
        with pytest.raises(TypeError, match=told):
            await consumer.commit(wrong)
        wrong = [TopicPartition(topic, 0)]
        with pytest.raises(TypeError, match="offsets are by TopicPartition, as in"):
            await consumer.commit(wrong)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"partitions": "3"}, "partitions is a whole number, not '3'"),
        ({"replication_factor": 1.0}, "replication_factor is a whole number, not 1.0"),
        ({"configs": {"retention.ms": 1000}}, "the config retention.ms is a str, not 1000"),
        ({"configs": {5: "1000"}}, "a config's name is a str, not 5"),
    ],
)
async def test_what_a_topic_is_made_of_is_checked(
    client: Client, topic: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        await client.admin.create_topic(topic, **options)


async def test_what_a_topic_is_changed_to_is_checked(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    wrong: Any = "2"
    with pytest.raises(TypeError, match="total is a whole number, not '2'"):
        await client.admin.create_partitions(topic, wrong)
    wrong = {"retention.ms": 1000}
    with pytest.raises(TypeError, match=r"the config retention\.ms is a str, not 1000"):
        await client.admin.alter_configs(topic, wrong)


async def test_times_are_told_in_the_unit_that_they_are_given_in(client: Client) -> None:
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"linger_ms is from 0 to 2147483647, not {wrong}"):
            client.producer(linger_ms=wrong)


async def test_settings_are_those_of_a_client(tidemark_session: BlockingCluster) -> None:
    wrong: Any
    for wrong in (5, {}, {"client_id": "a"}):
        with pytest.raises(TypeError, match="settings are ClientSettings, not"):
            async with open_client(tidemark_session.bootstrap, settings=wrong):
                raise AssertionError("it cannot be opened")
    wrong = None
    with pytest.raises(TypeError, match="username is a str, not None"):
        Sasl("PLAIN", wrong, "secret")
    with pytest.raises(TypeError, match="password is a str, not of type NoneType"):
        Sasl("PLAIN", "alice", wrong)


async def test_who_waits_for_nothing_leaves_the_processor_to_others(
    client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer whose records may take no time looked for late ones without a pause."""
    slept, sleep = [], trio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(trio, "sleep", noted)
    async with client.producer(delivery_timeout_seconds=0):
        await sleep(0.02)
    assert slept
    assert min(slept) > 0
