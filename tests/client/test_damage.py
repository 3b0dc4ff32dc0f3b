"""A batch that is damaged on the broker's disk, and each way to read: what lies before it is given,
and the error says where it is."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemark.client import TopicPartition
from tidemark.client.blocking import open_client, read_batches
from tidemark.client.columns import read_columns
from tidemark.client.spark.options import read_options
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.task import read_range
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import iter_headers
from tidemark.testing import BlockingCluster

COUNT, DAMAGED = 5, 2
IN_HEADER, IN_RECORD = 16, -1
Read = Callable[[str, TopicPartition, int], Iterator[int]]


def damage(cluster: BlockingCluster, partition: TopicPartition, at: int) -> None:
    """Flip a bit of the third batch on disk, at this place in it."""
    (path,) = cluster.data_dir.rglob(f"{partition}/*.log")
    starts = [begin for begin, _ in iter_headers(path.read_bytes())]
    flip(path, starts[DAMAGED + (at < 0)] + at)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def by_consumer(bootstrap: str, partition: TopicPartition, start: int) -> Iterator[int]:
    with (
        open_client(bootstrap) as client,
        client.consumer(partition, start=start, until_end=True) as consumer,
    ):
        for record in consumer:
            yield record.offset


def by_batches(bootstrap: str, partition: TopicPartition, start: int) -> Iterator[int]:
    for fetched in read_batches(bootstrap, partition, start, COUNT):
        yield from (header.base_offset for _, header in iter_headers(fetched.data))


def by_columns(bootstrap: str, partition: TopicPartition, start: int) -> Iterator[int]:
    for batch in read_columns(bootstrap, partition, start, COUNT):
        yield from batch["offset"].to_pylist()


def by_spark(bootstrap: str, partition: TopicPartition, start: int) -> Iterator[int]:
    options = read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": partition.topic})
    for batch in read_range(options, ("offset",), OffsetRange(partition, start, COUNT)):
        yield from batch["offset"].to_pylist()


@pytest.mark.parametrize(
    ("read", "at"),
    [
        (read, at)
        for read in (by_consumer, by_batches, by_columns, by_spark)
        for at in (IN_HEADER, IN_RECORD)
        if (read, at) != (by_batches, IN_RECORD)  # it decodes nothing
    ],
)
def test_what_lies_before_damage_is_given_and_the_error_says_where(
    tidemark_session: BlockingCluster, topic: str, read: Read, at: int
) -> None:
    bootstrap, here = tidemark_session.bootstrap, TopicPartition(topic, 0)
    with open_client(bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=1)
        with client.producer() as producer:
            for _ in range(COUNT):
                producer.send(topic, b"x").wait()
    damage(tidemark_session, here, at)
    given: list[int] = []
    with pytest.raises(CorruptBatch, match=f"{here} from offset {DAMAGED}, and"):
        given.extend(read(bootstrap, here, 0))  # it keeps what comes before an error
    assert given == [0, 1]
    if at == IN_RECORD:
        assert list(read(bootstrap, here, DAMAGED + 1)) == [3, 4]
