"""`kill -9` of brokers and of the process between them: each input has its output, once."""

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

SOURCE, TARGET = "numbers", "transformed"
COUNT = 2_500
PARTITIONS = 2
KILLS = 3
PORTION = COUNT // (KILLS + 1)
"""What there is to read before the first kill, and what each adds: however long a broker takes to
start again, all is not done before the last one."""
STILL_SECONDS_MAX = 150
"""Without one more output: with that a process has been stuck for as long as it may be, ended by
itself, and been replaced, on a machine that takes its time for all of it."""
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}

# Brokers and processes that start again and again: on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(900)


def start(bootstrap: str, partition: int) -> subprocess.Popen[bytes]:
    module = "tests.system.transforming"
    return subprocess.Popen(
        [sys.executable, "-m", module, bootstrap, SOURCE, TARGET, str(partition)]
    )


class Transformers:
    """A process for each partition; one that has ended is started again."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._processes = [start(bootstrap, partition) for partition in range(PARTITIONS)]

    def kill(self, partition: int) -> None:
        self._processes[partition].kill()
        self.start_ended()

    def start_ended(self) -> None:
        for partition, process in enumerate(self._processes):
            if process.poll() is not None:
                self._processes[partition] = start(self._bootstrap, partition)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def make_topics(cluster: ProcessCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    config = {"min.insync.replicas": "2"}
    for made in admin.create_topics(
        [NewTopic(name, PARTITIONS, 3, config=config) for name in (SOURCE, TARGET)]
    ).values():
        made.result(20)


class Numbers:
    """The source, portion by portion."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._count = 0

    def add(self) -> None:
        for number in range(self._count, self._count + PORTION):
            self._producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
        self._count += PORTION

    def flush(self) -> None:
        left = self._producer.flush(30)
        assert left == 0, f"{left} of the source's records were not acknowledged"


def read_target(consumer: Consumer) -> list[int]:
    """Some of what readers of committed records can have by now."""
    values = []
    for message in consumer.consume(200, timeout=0.3):
        value = message.value()
        if message.error() is None and value is not None:
            values.append(int(value))
    return values


def judge_of(cluster: ProcessCluster) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.assign([TopicPartition(TARGET, partition, 0) for partition in range(PARTITIONS)])
    return consumer


def test_each_input_has_its_output_once_whoever_is_killed(tmp_path: Path) -> None:
    rng = random.Random(7)
    kills, values = 0, list[int]()
    with open_process_cluster(tmp_path, settings=SETTINGS) as cluster:
        make_topics(cluster)
        numbers = Numbers(cluster.bootstrap)
        numbers.add()
        numbers.flush()
        judge, transformers = judge_of(cluster), Transformers(cluster.bootstrap)
        moved = time.monotonic()
        with ThreadPoolExecutor(1) as starting:
            started = starting.submit(cluster.start_missing)
            try:
                while len(values) < COUNT and time.monotonic() < moved + STILL_SECONDS_MAX:
                    if more := read_target(judge):
                        moved = time.monotonic()
                    values += more
                    transformers.start_ended()
                    # The next one only when all are there again: two of three have to be.
                    if started.done() and kills < KILLS and len(values) > COUNT * kills // 8:
                        started.result()
                        kills += 1
                        transformers.kill(rng.randrange(PARTITIONS))
                        cluster.brokers[rng.randint(1, 3)].kill()
                        numbers.add()
                        started = starting.submit(cluster.start_missing)
                numbers.flush()
                while more := read_target(judge):
                    values += more
            finally:
                transformers.stop()
                judge.close()
    assert kills == KILLS
    assert sorted(values) == list(range(COUNT))
