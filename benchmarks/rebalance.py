"""How long does a group of 20 members over 200 partitions take to take one more in?

Nineteen members of librdkafka read all partitions; a twentieth joins. What counts is the time from
its start until the twenty have all partitions among them and the newcomer its ten. Members send
heartbeats every 100 ms: with the clients' own intervals (3 s, 5 s) they would learn of the newcomer
only then, whatever the broker does.
"""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.harness import Row
from tidemark.testing.process import open_broker_process

MEMBERS: Final = 20
PARTITIONS: Final = 200
RUNS: Final = 5
HEARTBEAT_MS: Final = 100
_SECONDS_MAX: Final = 60.0

PROTOCOLS: Final[dict[str, dict[str, object]]] = {
    "classic, range": {
        "group.protocol": "classic",
        "partition.assignment.strategy": "range",
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "session.timeout.ms": 6_000,
    },
    "classic, cooperative-sticky": {
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "session.timeout.ms": 6_000,
    },
    "consumer, uniform": {"group.protocol": "consumer"},
}
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}


def measure(directory: Path) -> Iterator[Row]:
    with open_broker_process(directory / "rebalance", settings=SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        new = NewTopic("shared", num_partitions=PARTITIONS, replication_factor=1)
        admin.create_topics([new])["shared"].result(60)
        for name, settings in PROTOCOLS.items():
            yield Row(
                question=f"a rebalance of {MEMBERS} members over {PARTITIONS} partitions",
                case=f"{name}: the last member joins; heartbeats every {HEARTBEAT_MS} ms",
                value=_median(broker.bootstrap, name, settings),
                unit="s",
                runs=RUNS,
                aim=1.0,
                at_most=True,
            )


class _Member:
    """A consumer that polls on a thread, and knows how many partitions it has."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._settings = settings
        self.parts: set[int] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        self._consumer = Consumer(self._settings)
        self._consumer.subscribe(["shared"], on_assign=self._take, on_revoke=self._give)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()

    def _poll(self) -> None:
        while not self._is_over.is_set():
            self._consumer.poll(0.1)

    def _take(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.parts |= {each.partition for each in partitions}

    def _give(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.parts -= {each.partition for each in partitions}


def _median(bootstrap: str, name: str, settings: dict[str, object]) -> float:
    member = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "enable.auto.commit": False,
        **settings,
    }
    with ExitStack() as stack:
        members = [stack.enter_context(_Member(member)) for _ in range(MEMBERS - 1)]
        _wait_shared(members)
        seconds = []
        for _ in range(RUNS):
            started = time.perf_counter()
            with _Member(member) as last:
                _wait_shared([*members, last])
                seconds.append(time.perf_counter() - started)
            _wait_shared(members)
        return statistics.median(seconds)


def _wait_shared(members: list[_Member]) -> None:
    """Until each partition has one reader, and all have as many as they can."""
    least = PARTITIONS // len(members)
    deadline = time.perf_counter() + _SECONDS_MAX
    while True:
        parts = [set(member.parts) for member in members]
        if (
            sum(map(len, parts)) == len(set().union(*parts)) == PARTITIONS
            and min(map(len, parts)) >= least
        ):
            return
        if time.perf_counter() > deadline:
            raise TimeoutError("the members do not share the partitions")
        time.sleep(0.002)
