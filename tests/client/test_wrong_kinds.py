"""What is of a kind that a call does not take is told at once, and in words."""

from typing import Any

import pytest
import trio

from tidemark.client import Client, Sasl, TopicPartition, open_client
from tidemark.client.blocking import open_client as open_blocking_client
from tidemark.testing import BlockingCluster

# Any: these are the types that the signatures do not allow.


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
    for wrong in ([partition], partition, "last"):
        with pytest.raises(TypeError, match=r"places are by TopicPartition, .* End\(\)}, not"):
            await admin.list_offsets(wrong)
        with pytest.raises(TypeError, match=r'places are by TopicPartition, .* "end"}, not'):
            await admin.resolve_offsets(wrong)
        with pytest.raises(TypeError, match=r"offsets are by TopicPartition, .* 42}, not"):
            await admin.delete_records(wrong)


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


def test_a_script_is_told_what_is_run_and_what_is_sent(
    tidemark_session: BlockingCluster, topic: str
) -> None:
    with open_blocking_client(tidemark_session.bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=1)
        wrong: Any = client.admin.list_topics()
        with pytest.raises(TypeError, match=r"as in run\(client\.admin\.list_topics\), not <corou"):
            client.run(wrong)
        with client.producer() as producer:
            wrong = [(b"key", b"value", ())]
            with pytest.raises(TypeError, match="records are pairs of a key and a value, not"):
                producer.send_all(topic, wrong)
            wrong = 5
            with pytest.raises(TypeError, match=r"records are pairs .*, in a list, not 5"):
                producer.send_all(topic, wrong)


def test_a_closed_consumer_of_a_script_goes_nowhere(
    tidemark_session: BlockingCluster, topic: str
) -> None:
    with open_blocking_client(tidemark_session.bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=1)
        with client.consumer(topic) as consumer:
            consumer.seek(TopicPartition(topic, 0), "end")
        with pytest.raises(trio.ClosedResourceError, match="the consumer is closed"):
            consumer.seek(TopicPartition(topic, 0), "beginning")
