"""What the tests of clusters in trouble share: brokers that come and are turned away, and a client
that must notice nothing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.forked import Forked, outcome
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster

SECONDS: Final = 30.0
"""How long anything may take on a busy machine before a test gives up."""


def newcomer(directory: Path, *arguments: str) -> BrokerProcess:
    """A broker that is not started, on free ports."""
    return BrokerProcess(directory, arguments=arguments)


def refused(broker: BrokerProcess) -> str:
    """Start it, and see it end by itself: the one line, apart from the log, that it says."""
    status, lines = outcome(broker.command())
    assert status == 1
    (said,) = [line for line in lines if not line.startswith("{")]
    return said


@contextmanager
def waiting(broker: BrokerProcess) -> Iterator[Callable[[], str]]:
    """A broker that is started and does not serve yet; calling it gives its next warning."""
    output, theirs = os.pipe()
    lines = os.fdopen(output, "rb")
    with os.fdopen(theirs, "wb") as log:
        process = Forked(broker.command(), stderr=log)

    def next_warning() -> str:
        for line in lines:
            event = json.loads(line)
            if event["level"] == "warning":
                return str(event["event"])
        raise AssertionError("it ended without a warning")

    try:
        yield next_warning
        assert process.poll() is None, "it has ended, and should try on"
    finally:
        process.end()
        lines.close()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}"
        time.sleep(0.02)


def create_topic(cluster: ProcessCluster, topic: str, **configs: str) -> None:
    """One partition, on every broker. `configs` have underscores for dots."""
    with open_client(cluster.bootstrap) as client:
        client.run(_create, client, topic, len(cluster.brokers), configs)


async def _create(
    client: BlockingClient, topic: str, replicas: int, configs: dict[str, str]
) -> None:
    await client.admin.create_topic(
        topic,
        partitions=1,
        replication_factor=replicas,
        configs={name.replace("_", "."): value for name, value in configs.items()},
    )


def leader_of(client: BlockingClient, topic: str, *, after: int | None = None) -> int:
    """Who leads its only partition, once that is known, and once it is not `after` any more."""
    found: list[int] = []

    def is_led() -> bool:
        leader = client.run(client.admin.describe_topic, topic).partitions[0].leader
        found.append(-1 if leader is None else leader)
        return found[-1] not in (-1, after)

    wait_until(is_led, f"{topic} has a leader")
    return found[-1]


def values_in(client: BlockingClient, topic: str) -> list[bytes | None]:
    with client.consumer(topic, start="beginning", until_end=True) as consumer:
        return [record.value for record in consumer]


class Bystander:
    """A client that produces to a topic on all brokers, and waits for each acknowledgement."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self.count = 0
        self.slowest_seconds = 0.0

    def start(self) -> None:
        self._thread.start()
        wait_until(lambda: self.count > 0 or self._failure is not None, "a first acknowledgement")
        self.slowest_seconds = 0.0

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with open_client(self._bootstrap) as client, client.producer() as producer:
                while not self._stopping.wait(0.01):
                    started = time.perf_counter()
                    producer.send(self._topic, b"%d" % self.count).wait()
                    self.count += 1
                    took = time.perf_counter() - started
                    self.slowest_seconds = max(self.slowest_seconds, took)
        except Exception as error:
            self._failure = error


@contextmanager
def bystander(cluster: ProcessCluster, topic: str, *, seconds_max: float = 20.0) -> Iterator[None]:
    """One as long as the block lasts: it loses nothing, and is never held up for long."""
    create_topic(cluster, topic)
    client = Bystander(cluster.bootstrap, topic)
    client.start()
    try:
        yield
    finally:
        client.stop()
    with open_client(cluster.bootstrap) as reader:
        assert values_in(reader, topic) == [b"%d" % number for number in range(client.count)]
    assert client.slowest_seconds < seconds_max
