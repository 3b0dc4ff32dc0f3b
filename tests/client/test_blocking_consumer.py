"""What a loop over a blocking consumer was given, though records cross to its thread in rows."""

import sys
import threading
from collections.abc import Iterator

import pytest
import trio

from tidemark.client import TopicPartition
from tidemark.client.blocking import BlockingClient, BlockingConsumer, open_client
from tidemark.testing import BlockingCluster


@pytest.fixture
def scripts(tidemark_session: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark_session.bootstrap) as client:
        yield client


@pytest.fixture
def here(scripts: BlockingClient, topic: str) -> TopicPartition:
    """A partition with ten records, which come in one fetch."""
    scripts.run(scripts.admin.create_topic, topic, partitions=1)
    with scripts.producer() as producer:
        producer.send_all(topic, [(None, b"%d" % index) for index in range(10)])
    return TopicPartition(topic, 0)


def take(consumer: BlockingConsumer, count: int) -> list[int]:
    """The offsets of the next records, in a loop that is left after them."""
    offsets: list[int] = []
    for record in consumer:
        offsets.append(record.offset)
        if len(offsets) == count:
            break
    return offsets


def test_a_loop_that_was_left_is_gone_on_with(
    scripts: BlockingClient, here: TopicPartition
) -> None:
    with scripts.consumer(here, until_end=True) as consumer:
        assert take(consumer, 3) == [0, 1, 2]
        assert take(consumer, 1) == [3]
        assert [record.offset for record in consumer.fetch()] == [4, 5, 6, 7, 8, 9]
        assert list(consumer) == []


def test_undecoded_batches_begin_after_what_a_loop_has_handed_out(
    scripts: BlockingClient, here: TopicPartition
) -> None:
    with scripts.consumer(here, until_end=True) as consumer:
        take(consumer, 3)
        fetched = consumer.fetch_batches()
        assert fetched is not None
        assert (fetched.fetch_offset, fetched.next_offset) == (3, 10)
        assert list(consumer) == []


def test_only_what_a_loop_has_handed_out_is_committed(
    scripts: BlockingClient, here: TopicPartition, group: str
) -> None:
    with scripts.consumer(here, group=group, auto_commit_seconds=None) as consumer:
        for record in consumer:
            assert consumer.position(here) == record.offset + 1
            consumer.commit()
            assert consumer.committed()[here].offset == record.offset + 1
            if record.offset == 4:
                break
        assert take(consumer, 2) == [5, 6]
        consumer.commit()
        assert consumer.committed()[here].offset == 7


def test_what_a_loop_has_not_handed_out_is_read_by_the_next_of_the_group(
    scripts: BlockingClient, topic: str, here: TopicPartition, group: str
) -> None:
    with scripts.consumer(topic, group=group) as consumer:
        assert take(consumer, 4) == [0, 1, 2, 3]
    with scripts.consumer(topic, group=group, until_end=True) as consumer:
        assert [record.offset for record in consumer] == [4, 5, 6, 7, 8, 9]


def test_a_seek_in_a_loop_is_for_the_next_record(
    scripts: BlockingClient, here: TopicPartition
) -> None:
    offsets: list[int] = []
    with scripts.consumer(here, until_end=True) as consumer:
        for record in consumer:
            offsets.append(record.offset)
            if record.offset == 2:
                consumer.seek(here, 8)
    assert offsets == [0, 1, 2, 8, 9]


def test_what_is_paused_in_a_loop_comes_after_it_is_resumed(
    scripts: BlockingClient, topic: str
) -> None:
    scripts.run(scripts.admin.create_topic, topic, partitions=2)
    with scripts.producer() as producer:
        for partition in range(2):
            for _ in range(5):
                producer.send(topic, b"x", partition=partition)
    places: list[tuple[int, int]] = []
    with scripts.consumer(topic, until_end=True) as consumer:
        for record in consumer:
            places.append((record.partition, record.offset))
            if len(places) == 2:
                first = TopicPartition(topic, record.partition)
                consumer.pause(first)
            if len(places) == 7:
                consumer.resume(first)
    other = 1 - first.partition
    assert places == [
        *((first.partition, offset) for offset in range(2)),
        *((other, offset) for offset in range(5)),
        *((first.partition, offset) for offset in range(2, 5)),
    ]


def test_threads_that_read_with_one_consumer_lose_nothing(
    scripts: BlockingClient, topic: str, quick_switches: None
) -> None:
    """All but one are refused at a time, and not at the cost of what that one gets."""
    scripts.run(scripts.admin.create_topic, topic, partitions=4)
    with scripts.producer(batch_bytes=500) as producer:
        producer.send_all(topic, [(b"%d" % (index % 37), b"%d" % index) for index in range(2000)])
    got: set[bytes | None] = set()
    with scripts.consumer(topic, until_end=True, partition_bytes=2000) as consumer:

        def read() -> None:
            is_refused = True
            while is_refused:
                try:
                    got.update(record.value for record in consumer)
                    is_refused = False
                except trio.BusyResourceError:
                    pass

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == {b"%d" % index for index in range(2000)}


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that take turns more often than they would."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)
