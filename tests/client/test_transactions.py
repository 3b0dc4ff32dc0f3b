"""The transactional producer against a real broker."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import trio

from tests.client.helpers import read_values, until
from tidemark.client import (
    Client,
    Consumer,
    ErrorCode,
    Producer,
    RequestError,
    TopicPartition,
    blocking,
    open_client,
)
from tidemark.client.coordinator import GroupMembership
from tidemark.client.delivery import DeliveryFuture
from tidemark.client.offsets import Isolation
from tidemark.protocol.types import Offset
from tidemark.testing import BlockingCluster


async def committed(client: Client, topic: str) -> list[bytes | None]:
    """What is read, once the markers are written: a commit is answered before."""
    (described,) = await client.admin.describe_topics([topic])
    partitions = [TopicPartition(topic, each.partition) for each in described.partitions]

    async def is_over() -> bool:
        ends = await client.admin.end_offsets(partitions)
        stable = await client.admin.end_offsets(partitions, isolation=Isolation.READ_COMMITTED)
        return ends == stable

    await until(is_over)
    async with client.consumer(
        topic, until_end=True, isolation=Isolation.READ_COMMITTED
    ) as consumer:
        return sorted([record.value async for record in consumer], key=lambda value: value or b"")


class Oops(Exception):
    """What goes wrong in a block."""


async def fail(producer: Producer, topic: str, value: bytes) -> None:
    async with producer.transaction():
        await producer.send(topic, value, partition=0)
        await producer.flush()
        raise Oops


async def test_all_of_a_transaction_is_read_or_nothing(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=3)
    async with client.producer(transactional_id=topic) as producer:
        for number in range(4):
            async with producer.transaction():
                for partition in range(3):
                    await producer.send(topic, b"%d-%d" % (number, partition), partition=partition)
        with pytest.raises(Oops):
            await fail(producer, topic, b"never")
        async with producer.transaction():
            await producer.send(topic, b"last", b"key")
        async with producer.transaction():
            pass
    expected = [b"%d-%d" % (number, partition) for number in range(4) for partition in range(3)]
    assert await committed(client, topic) == [*expected, b"last"]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_what_a_producer_has_prepared_is_ended_by_somebody_else(
    client: Client, topic: str, commit: bool
) -> None:
    await client.admin.create_topic(topic)
    async with client.producer(transactional_id=topic) as producer:
        async with producer.transaction():
            await producer.send(topic, b"prepared")
            prepared = await producer.prepare_transaction()
            with pytest.raises(ValueError, match="sends within"):
                await producer.send(topic, b"too late")
        assert prepared is not None
    assert (await client.admin.describe_transaction(topic)).state == "Ongoing"
    for _ in range(2):  # an answer may be lost
        await client.admin.end_transaction(prepared, commit=commit)
    assert await committed(client, topic) == ([b"prepared"] if commit else [])
    with pytest.raises(RequestError):
        await client.admin.end_transaction(prepared, commit=not commit)


async def test_those_that_were_listed_are_described_by_who_coordinates_them(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic)
    async with client.producer(transactional_id=topic) as producer, producer.transaction():
        await producer.send(topic, b"a", partition=0)
        await producer.flush()
        (listed,) = [
            each
            for each in await client.admin.list_transactions()
            if each.transactional_id == topic
        ]
        elsewhere = replace(listed, transactional_id=f"{topic}-2", coordinator=77)
        forgotten = replace(listed, transactional_id=f"{topic}-3")
        described = await client.admin.describe_transactions([forgotten, elsewhere, listed])
        assert described == {topic: await client.admin.describe_transaction(topic)}
        assert described[topic].partitions == {TopicPartition(topic, 0)}


async def test_a_producer_that_begins_aborts_what_was_prepared(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic)
    async with client.producer(transactional_id=topic) as producer:
        async with producer.transaction():
            await producer.send(topic, b"never")
            prepared = await producer.prepare_transaction()
        async with producer.transaction():
            assert await producer.prepare_transaction() is None
        async with producer.transaction():
            await producer.send(topic, b"next")
    assert prepared is not None
    with pytest.raises(RequestError):
        await client.admin.end_transaction(prepared, commit=True)
    assert await committed(client, topic) == [b"next"]


async def test_a_cancelled_one_is_aborted(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic)
    async with client.producer(transactional_id=topic) as producer:
        with trio.move_on_after(0.2):
            async with producer.transaction():
                await producer.send(topic, b"never")
                await producer.flush()
                await trio.sleep_forever()
        async with producer.transaction():
            await producer.send(topic, b"after it")
    assert await committed(client, topic) == [b"after it"]


async def test_another_one_fences_the_first(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic)

    async def be_late(zombie: Producer) -> None:
        async with zombie.transaction():
            await zombie.send(topic, b"of the zombie")
            await zombie.flush()
            async with client.producer(transactional_id=topic) as heir, heir.transaction():
                await heir.send(topic, b"of its heir")

    async with client.producer(transactional_id=topic) as zombie:
        for _ in range(2):
            with pytest.raises(RequestError) as fenced:
                await be_late(zombie)
            assert fenced.value.code is ErrorCode.PRODUCER_FENCED
    assert await committed(client, topic) == [b"of its heir"]


async def test_a_record_that_cannot_be_stored_aborts_the_rest(client: Client, topic: str) -> None:
    async def send_too_much(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send(topic, b"small", partition=0)
            await producer.send(topic, b"x" * 2000, partition=1)

    await client.admin.create_topic(topic, partitions=2, configs={"max.message.bytes": "1000"})
    async with client.producer(transactional_id=topic) as producer:
        with pytest.raises(RequestError) as refused:
            await send_too_much(producer)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        async with producer.transaction():
            await producer.send(topic, b"after it", partition=1)
    assert await committed(client, topic) == [b"after it"]


async def test_offsets_are_committed_with_it(client: Client, topic: str, group: str) -> None:
    await client.admin.create_topic(topic)
    partition = TopicPartition(topic, 0)

    async def is_committed(offset: int) -> bool:
        found = await client.admin.list_group_offsets(group, [partition])
        return found[partition].offset == offset

    async def commit_and_fail(producer: Producer, consumer: Consumer) -> None:
        async with producer.transaction():
            await producer.send_offsets_to_transaction(
                {partition: Offset(3)}, consumer.group_membership
            )
            raise Oops

    async with client.producer() as producer:
        for value in (b"1", b"2", b"3"):
            await producer.send(topic, value)
    async with (
        client.consumer(topic, group=group, auto_commit_seconds=None) as consumer,
        client.producer(transactional_id=topic) as producer,
    ):
        await consumer.fetch()
        await consumer.commit({partition: Offset(1)})
        async with producer.transaction():
            membership = consumer.group_membership
            await producer.send_offsets_to_transaction({partition: Offset(2)}, membership)
            with trio.move_on_after(0.3) as waited:
                await is_committed(1)
            assert waited.cancelled_caught, "who wants stable offsets waits for the end"
        await until(partial(is_committed, 2))
        with pytest.raises(Oops):
            await commit_and_fail(producer, consumer)
        await until(partial(is_committed, 2))


async def test_what_cannot_be_is_said_at_once(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic)
    with pytest.raises(ValueError, match="acks"):
        client.producer(transactional_id=topic, acks=1)
    async with client.producer() as producer:
        with pytest.raises(ValueError, match="transactional_id"):
            async with producer.transaction():
                pass
    async with client.producer(transactional_id=topic) as producer:
        with pytest.raises(ValueError, match="within"):
            await producer.send(topic, b"outside")
        async with producer.transaction():
            with pytest.raises(ValueError, match="nested"):
                async with producer.transaction():
                    pass


async def test_what_is_sent_while_it_is_committed_is_refused(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    sent: list[bytes] = []

    async def send_on(producer: Producer) -> None:
        while True:
            value = b"%06d" % len(sent)
            await producer.send(topic, value)
            sent.append(value)
            await trio.lowlevel.checkpoint()

    async def send_on_until_refused(producer: Producer) -> None:
        with pytest.raises(ValueError, match="within"):
            await send_on(producer)

    async def commit_meanwhile(producer: Producer) -> None:
        async with trio.open_nursery() as nursery, producer.transaction():
            nursery.start_soon(send_on_until_refused, producer)
            await trio.sleep(0.02)

    # One batch goes at a time, and those that have no need to go linger: half of the times, one
    # that is sent meanwhile would be left when the transaction has ended.
    async with client.producer(
        transactional_id=topic, max_in_flight=1, linger_ms=60_000
    ) as producer:
        for _ in range(10):
            await commit_meanwhile(producer)
    assert await committed(client, topic) == sent


async def test_a_transaction_that_is_prepared_takes_nothing_more(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(transactional_id=topic) as producer, producer.transaction():
        await producer.send(topic, b"prepared")
        await producer.prepare_transaction()
        with pytest.raises(ValueError, match="within"):
            await producer.send(topic, b"late")
        with pytest.raises(ValueError, match="no transaction is open"):
            await producer.send_offsets_to_transaction(
                {TopicPartition(topic, 0): Offset(1)}, GroupMembership(group=group)
            )


async def test_none_begins_until_the_one_before_has_ended(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    is_over = False

    async def begin_another(producer: Producer) -> None:
        while not is_over:
            with pytest.raises(ValueError, match="nested"):
                async with producer.transaction():
                    pass
            await trio.lowlevel.checkpoint()

    async with client.producer(transactional_id=topic) as producer, trio.open_nursery() as nursery:
        async with producer.transaction():
            await producer.send(topic, b"whole")
            nursery.start_soon(begin_another, producer)
        is_over = True
    assert await committed(client, topic) == [b"whole"]


def test_the_blocking_twin_does_the_same(tidemark_session: BlockingCluster, topic: str) -> None:
    with blocking.open_client(tidemark_session.bootstrap) as client:
        client.run(client.admin.create_topic, topic)

        def fail_in(producer: blocking.BlockingProducer) -> None:
            with producer.transaction():
                producer.send(topic, b"never")
                raise Oops

        with client.producer(transactional_id=topic) as producer:
            with producer.transaction():
                producer.send(topic, b"kept")
            with pytest.raises(Oops):
                fail_in(producer)

    async def look() -> list[bytes | None]:
        async with open_client(tidemark_session.bootstrap) as client:
            return await committed(client, topic)

    assert trio.run(look) == [b"kept"]


async def test_an_abort_before_the_first_record_is_sent_harms_nothing(
    client: Client, topic: str
) -> None:
    """The sender has taken its batch, and waits for a connection, when it is given up."""
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(transactional_id=topic) as producer:
        deliveries: list[DeliveryFuture] = []

        async def fail_at_once() -> None:
            async with producer.transaction():
                deliveries.append(await producer.send(topic, b"never"))
                for _ in range(3):
                    await trio.lowlevel.checkpoint()  # the sender takes it, and connects
                raise Oops

        with pytest.raises(Oops):
            await fail_at_once()
        with pytest.raises(RequestError) as raised:
            await deliveries[0].wait()
        assert raised.value.code is ErrorCode.TRANSACTION_ABORTABLE
        async with producer.transaction():
            await producer.send(topic, b"fine")
    assert await committed(client, topic) == [b"fine"]


async def test_who_is_fenced_in_the_middle_is_told_so_by_its_next_transaction(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(transactional_id=topic) as first:

        async def come_too_late() -> None:
            async with first.transaction():
                await (await first.send(topic, b"never")).wait()
                async with client.producer(transactional_id=topic) as second, second.transaction():
                    await second.send(topic, b"second's")
                await first.send(topic, b"too late")

        with pytest.raises(RequestError) as late:
            await come_too_late()
        assert late.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        with pytest.raises(RequestError) as fenced:
            async with first.transaction():
                raise AssertionError("it has begun")
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
    assert await committed(client, topic) == [b"second's"]


async def test_no_offsets_are_nothing_to_be_committed(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with (
        client.consumer(topic, group=group) as consumer,
        client.producer(transactional_id=topic) as producer,
    ):
        async with producer.transaction():
            await producer.send_offsets_to_transaction({}, consumer.group_membership)
        async with producer.transaction():
            await producer.send(topic, b"x")
    assert await read_values(client, topic) == [b"x"]
