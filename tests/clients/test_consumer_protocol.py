"""Groups of the consumer protocol (KIP-848) with confluent-kafka, `group.protocol=consumer`."""

import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.clients import group_failover
from tests.clients.consumer_protocol import CONSUMER, PARTITIONS, Reader, share, wait_for
from tests.clients.librdkafka import create
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster


@pytest.fixture
def orders(bootstrap: str, topic: str) -> str:
    create(bootstrap, topic, partitions=PARTITIONS)
    return topic


def test_members_come_and_go_and_only_what_must_moves(
    bootstrap: str, orders: str, group: str
) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(Reader(bootstrap, group, [orders]))
        share(orders, first)
        with Reader(bootstrap, group, [orders]) as second:
            share(orders, first, second)
            third = stack.enter_context(Reader(bootstrap, group, [orders]))
            share(orders, first, second, third)
            assert (first.moves, second.moves) == (4, 1)
        share(orders, first, third)
        assert (first.moves, third.moves) == (4, 0), "nobody gives up what it may keep"
        admin = AdminClient({"bootstrap.servers": bootstrap})  # held: its futures need it
        described = admin.describe_consumer_groups([group])[group].result(10)
        assert len(described.members) == 2


_VICTIM = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "group.protocol": "consumer",
})
consumer.subscribe([sys.argv[3]], on_assign=lambda _, parts: print(len(parts), flush=True))
while True:
    consumer.poll(0.1)
"""


def test_the_part_of_a_member_that_is_killed_is_read_by_others(
    bootstrap: str, orders: str, group: str
) -> None:
    with Reader(bootstrap, group, [orders]) as survivor:
        share(orders, survivor)
        command = [sys.executable, "-c", _VICTIM, bootstrap, group, orders]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            while victim.stdout.readline().strip() != "3":
                pass
            victim.kill()
        share(orders, survivor)


def test_a_static_member_that_restarts_finds_its_part_as_it_was(
    bootstrap: str, orders: str, group: str
) -> None:
    with Reader(bootstrap, group, [orders]) as other:
        with Reader(bootstrap, group, [orders], **{"group.instance.id": "one"}) as before:
            share(orders, other, before)
            had, moves = set(before.parts), other.moves
        with Reader(bootstrap, group, [orders], **{"group.instance.id": "one"}) as after:
            share(orders, other, after)
            assert (after.parts, other.moves) == (had, moves)


def test_two_of_one_instance_are_told_so(bootstrap: str, orders: str, group: str) -> None:
    with Reader(bootstrap, group, [orders], **{"group.instance.id": "one"}) as first:
        share(orders, first)
        with Reader(bootstrap, group, [orders], **{"group.instance.id": "one"}) as second:
            wait_for(lambda: bool(second.errors))
            assert "instance ID is still used" in str(second.errors[0])


def test_topics_are_read_by_pattern_as_they_come(bootstrap: str, topic: str, group: str) -> None:
    with Reader(bootstrap, group, [f"^{topic}-.*"]) as reader:
        create(bootstrap, f"{topic}-a")
        wait_for(lambda: reader.parts == {(f"{topic}-a", 0)})
        create(bootstrap, f"{topic}-b", partitions=2)
        create(bootstrap, f"other-{topic}-b")
        wait_for(lambda: len(reader.parts) == 3)


def test_what_was_read_is_committed_and_gone_on_from(
    bootstrap: str, orders: str, group: str
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(orders, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(20) == 0
    seen: list[bytes] = []
    for count in (40, 60):
        settings = {"bootstrap.servers": bootstrap, "group.id": group, **CONSUMER}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe([orders])
        deadline = time.monotonic() + 20
        end = len(seen) + count
        while len(seen) < end and time.monotonic() < deadline:
            for message in consumer.consume(1, 0.5):
                value = message.value()
                assert isinstance(value, bytes)
                seen.append(value)
                consumer.commit(message=message, asynchronous=False)
        consumer.close()
    assert sorted(map(int, seen)) == list(range(100))


def test_group_failover(cluster: ProcessCluster, topic: str, group: str) -> None:
    group_failover.fill(cluster, topic)
    values: set[bytes] = set()
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, **CONSUMER}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    deadline = time.monotonic() + group_failover.SECONDS_MAX
    is_killed = False
    while len(values) < group_failover.COUNT and time.monotonic() < deadline:
        for message in consumer.consume(group_failover.COMMIT_EVERY, 0.2):
            value = message.value()
            if message.error() is None and isinstance(value, bytes):
                values.add(value)
        if len(values) >= group_failover.KILL_AT and not is_killed:
            is_killed = True
            group_failover.kill_coordinator(cluster, group)
    consumer.close()
    assert len(values) == group_failover.COUNT


def test_a_restart_of_the_broker_keeps_the_group(
    own_broker: BrokerProcess, topic: str, group: str
) -> None:
    create(own_broker.bootstrap, topic, partitions=PARTITIONS)
    with (
        Reader(own_broker.bootstrap, group, [topic]) as first,
        Reader(own_broker.bootstrap, group, [topic]) as second,
    ):
        share(topic, first, second)
        moves = first.moves, second.moves
        own_broker.kill()
        own_broker.start()
        time.sleep(1)
        share(topic, first, second)
        assert (first.moves, second.moves) == moves, "they go on where they were"
