"""`kill -9` at any moment: what was acknowledged is there, once, in order, and nothing is torn."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.testing.process import BrokerProcess, open_broker_process

TOPIC = "survivor"
KILLS = 4
UNACKNOWLEDGED_MAX = 5_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with open_broker_process(tmp_path / "data") as process:
        yield process


class Workload:
    """An idempotent producer that numbers its records and remembers which were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, int] = {}  # number -> offset
        self.sent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 60_000,
            }
        )

    def __enter__(self) -> "Workload":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._producer.produce(
                TOPIC, b"%d" % self.sent, partition=0, on_delivery=self._delivered
            )
            self.sent += 1
            self._producer.poll(0)
            while len(self._producer) > UNACKNOWLEDGED_MAX:
                self._producer.poll(0.05)
        assert self._producer.flush(30) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value, offset = message.value(), message.offset()
        if error is None:
            assert isinstance(value, bytes)
            assert offset is not None
            self.acknowledged[int(value)] = offset


def stored(bootstrap: str) -> list[int]:
    """The numbers in the log, in its order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    partition = TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=10)
    consumer.assign([partition])
    numbers: list[int] = []
    while len(numbers) < end:
        for message in consumer.consume(10_000, 1.0):
            assert message.error() is None, message.error()
            assert message.offset() == len(numbers)
            value = message.value()
            assert isinstance(value, bytes)
            numbers.append(int(value))
    consumer.close()
    return numbers


@pytest.mark.parametrize("flush", ["commit", "os"])
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(
    broker: BrokerProcess, flush: str
) -> None:
    new = NewTopic(TOPIC, num_partitions=1, replication_factor=1, config={"flush": flush})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([new])[TOPIC].result(10)
    moments = random.Random(7)
    with Workload(broker.bootstrap) as workload:
        for _ in range(KILLS):
            time.sleep(moments.uniform(0.3, 1.0))
            broker.kill()
            broker.start()
    numbers = stored(broker.bootstrap)
    assert len(workload.acknowledged) == workload.sent > 100
    assert numbers == list(range(workload.sent))
    assert all(numbers[offset] == number for number, offset in workload.acknowledged.items())


def test_a_high_watermark_that_was_seen_never_goes_back(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(10)
    seen = 0
    for _ in range(KILLS):
        with Workload(broker.bootstrap):
            time.sleep(0.3)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
        consumer.close()
        assert end > seen
        seen = end
        broker.kill()
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
        _, again = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
        consumer.close()
        assert again >= seen
