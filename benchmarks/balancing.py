"""How long does it take until 300 leaders, all on one of three brokers, are even, under load?

Three broker processes on this machine, with the balancer's bounds as they come. It is turned off
while two brokers are drained and resumed, so that broker 1 leads all, and then asked once, as
`tidemark leader balance --now` does, while all partitions are written to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.harness import Row
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing.process_cluster import open_process_cluster

_PARTITIONS: Final = 300
_RECORDS_PER_SECOND: Final = 2_000
_RECORD_BYTES: Final = 1_000
_SECONDS_MAX: Final = 120.0
_SETTINGS: Final = {
    "leader.balance.enable": "false",
    "offsets.topic.num.partitions": "1",
}


def measure(directory: Path) -> Iterator[Row]:
    """Three rows: how long it took, how many moves, and the writes that failed."""
    folder = directory / "balancing"
    folder.mkdir()
    with open_process_cluster(folder, settings=_SETTINGS) as cluster:
        topic, is_over = "uneven", threading.Event()
        with open_client(cluster.bootstrap) as client:
            _create(client, cluster.bootstrap, topic)
            load = _Load(cluster.bootstrap, topic, is_over)
            load.start()
            time.sleep(5)
            began = time.monotonic()
            plan = client.run(partial(client.admin.balance_leaders, now=True))
            seconds = _wait_even(client, began)
            is_over.set()
            load.join()
    case = f"{_PARTITIONS} leaders on one of 3 brokers, {_RECORDS_PER_SECOND:,} records/s"
    question = "leaders even to within one"
    yield Row(question=question, case=case, value=seconds, unit="s", runs=1, aim=20.0, at_most=True)
    yield Row(question=question, case="moves", value=len(plan.moves), unit="moves", runs=1)
    yield Row(
        question=question,
        case="writes that failed",
        value=load.failed,
        unit=f"of {load.sent:,}",
        runs=1,
        aim=0.0,
        at_most=True,
    )


def _create(client: BlockingClient, bootstrap: str, topic: str) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while not client.run(client.admin.describe_cluster).controller_id:
        time.sleep(0.1)
    new = NewTopic(topic, _PARTITIONS, replica_assignment=[[1, 2, 3]] * _PARTITIONS)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # its futures fail when it is collected
    admin.create_topics([new])[topic].result(60)
    for node in (2, 3):
        client.run(partial(client.admin.drain_broker, node, force=True))
    while _leaders(client)[0] < _PARTITIONS:
        assert time.monotonic() < deadline, "broker 1 does not lead them all"
        time.sleep(0.2)
    for node in (2, 3):
        client.run(client.admin.resume_broker, node)


def _leaders(client: BlockingClient) -> list[int]:
    return [each.leaders for each in client.run(client.admin.describe_brokers)]


def _wait_even(client: BlockingClient, began: float) -> float:
    """How many seconds after that it was so."""
    while True:
        led = _leaders(client)
        seconds = time.monotonic() - began
        if max(led) - min(led) <= 1 and sum(led) == _PARTITIONS:
            return seconds
        assert seconds < _SECONDS_MAX, f"not even: {led}"
        time.sleep(0.1)


class _Load(threading.Thread):
    """librdkafka writes at a steady rate, to all partitions in turn."""

    def __init__(self, bootstrap: str, topic: str, is_over: threading.Event) -> None:
        super().__init__()
        self.sent = self.failed = 0
        self._servers = bootstrap
        self._topic = topic
        self._is_over = is_over

    def run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._servers, "acks": "all", "enable.idempotence": True}
        )
        began, value = time.monotonic(), b"x" * _RECORD_BYTES
        while not self._is_over.is_set():
            due = int((time.monotonic() - began) * _RECORDS_PER_SECOND)
            while self.sent < due:
                partition = self.sent % _PARTITIONS
                producer.produce(
                    self._topic, value, partition=partition, on_delivery=self._delivered
                )
                self.sent += 1
            producer.poll(0.01)
        self.failed += producer.flush(30)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.failed += error is not None
