"""Idempotent producers whose requests are refused or not answered: each record once."""

import errno
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.partitions.storage.log import Log
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing import open_blocking_cluster

SECONDS_MAX = 30.0


def stored(data_dir: Path, topic: str, partition: int) -> Iterator[tuple[BatchHeader, list[bytes]]]:
    """The batches of a partition, and their values, as they lie on the disk."""
    for path in sorted((data_dir / f"{topic}-{partition}").glob("*.log")):
        data = path.read_bytes()
        for at, header in iter_headers(data):
            records = decode_records(data[at : at + header.size_bytes])
            yield header, [record.value or b"" for record in records]


class FullDisk:
    """Has no room for the second batch of one partition, a few times; for all others it has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: str, *, times: int) -> None:
        self.left = times
        append = Log.append_run

        def append_if_there_is_room(
            log: Log,
            batches: Sequence[bytearray | memoryview],
            headers: Sequence[BatchHeader],
            epoch: Epoch,
        ) -> Offset:
            # Headers may come as they were unpacked.
            is_second = any(BatchHeader(*header).base_sequence == 1 for header in headers)
            if self.left and is_second and Path(log.directory).name == directory:
                self.left -= 1
                raise OSError(errno.ENOSPC, "no room")
            return append(log, batches, headers, epoch)

        monkeypatch.setattr(Log, "append_run", append_if_there_is_room)


def wait_until_stored(data_dir: Path, topic: str, partition: int, value: bytes) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not any(value in values for _, values in stored(data_dir, topic, partition)):
        assert time.monotonic() < deadline, f"{value!r} is not stored"
        time.sleep(0.01)


def test_a_full_disk_under_one_partition_doubles_nothing_in_another(
    monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """librdkafka#4953. One partition holds a record whose answer does not come. If the second
    request to the other is called out of order, librdkafka begins a new epoch for both, and sends
    that record again under it: nobody can tell any more that it is the same."""
    disk = FullDisk(monkeypatch, f"{topic}-0", times=4)
    answers: dict[bytes, KafkaError | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        answers[message.value() or b""] = error

    with open_blocking_cluster(brokers=2, settings={"log.flush": "commit"}) as cluster:
        full, slow = cluster.nodes
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        new = NewTopic(topic, 2, replica_assignment=[[full], [slow]])
        admin.create_topics([new])[topic].result(20)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "socket.timeout.ms": 1_000,
                "linger.ms": 0,
            }
        )

        def send(partition: int, value: bytes) -> None:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
            producer.poll(0.01)

        send(0, b"first")
        send(1, b"first of the other")
        assert producer.flush(SECONDS_MAX) == 0
        cluster.delay_disk(slow, 3)
        send(1, b"unanswered")
        wait_until_stored(cluster.data_dir_of(slow), topic, 1, b"unanswered")
        for number in range(4):
            send(0, b"%d" % number)
        producer.poll(2)
        cluster.delay_disk(slow, 0)
        assert producer.flush(SECONDS_MAX) == 0
        homes = [cluster.data_dir_of(node) for node in (full, slow)]
        batches = [list(stored(home, topic, number)) for number, home in enumerate(homes)]
    assert disk.left == 0
    assert set(answers.values()) == {None}
    got = [[value for _, values in each for value in values] for each in batches]
    assert got[1] == [b"first of the other", b"unanswered"]
    assert got[0] == [b"first", b"0", b"1", b"2", b"3"]
    assert {header.producer_epoch for each in batches for header, _ in each} == {0}
