"""kafka-python, unmodified: an idempotent producer by default, and a strict decoder."""

import gc
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.request import urlopen

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import (
    InvalidReplicationAssignmentError,
    KafkaError,
    MessageSizeTooLargeError,
    NoReassignmentInProgressError,
    TopicAlreadyExistsError,
)
from kafka.structs import OffsetAndMetadata

from tests.clients import failover, group_failover, moving
from tests.clients.kafka_python import admin, consumer, create, producer
from tests.clients.quotas import VALUES, limited, takes_time
from tests.clients.samples import CODECS, COMPRESSIBLE, SAMPLES, TIMESTAMP_MS
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster

PREFERRED = 0
ELECTION_NOT_NEEDED = 84

# kafka-python ships no types: what it hands out is `Any`. Some of its sockets it leaves to the
# garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def abandoned_sockets() -> Iterator[None]:
    """Those that it was connecting with when a broker died go here, where that is no error."""
    yield
    gc.collect()


def produce(bootstrap: str, topic: str, values: Sequence[bytes], **settings: object) -> None:
    with producer(bootstrap, **settings) as client:
        for value in values:
            client.send(topic, value, partition=0)
        client.flush(20)


def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    with consumer(bootstrap) as client:
        client.assign([TopicPartition(topic, 0)])
        return take(client, count)


def take(client: Any, count: int) -> list[Any]:
    records = list(islice(client, count))
    assert len(records) == count
    return records


def test_topics(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=3)
    with admin(bootstrap) as client:
        assert topic in client.list_topics()
        client.create_partitions({topic: NewPartitions(5)})
        (described,) = client.describe_topics([topic])
        assert len(described["partitions"]) == 5
        with pytest.raises(TopicAlreadyExistsError):
            client.create_topics([NewTopic(topic, 1, 1)])
        client.delete_topics([topic])
        assert topic not in client.list_topics()


def test_configs(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, configs={"retention.ms": "1000000"})
    with admin(bootstrap) as client:
        change = {"segment.bytes": "2000000"}
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=change)])
        described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    text = str(described)
    assert "2000000" in text
    assert "1000000" in text


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with producer(bootstrap) as client:
        for sample in SAMPLES:
            client.send(
                topic,
                sample.value,
                sample.key,
                partition=0,
                headers=list(sample.headers),
                timestamp_ms=sample.timestamp_ms,
            )
        client.flush(20)
    records = read(bootstrap, topic, len(SAMPLES))
    for offset, (sample, record) in enumerate(zip(SAMPLES, records, strict=True)):
        assert (record.offset, record.key, record.value) == (offset, sample.key, sample.value)
        assert tuple(record.headers) == sample.headers
        assert record.timestamp == sample.timestamp_ms


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(bootstrap: str, topic: str, acks: int | str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a", b"b", b"c"], acks=acks, enable_idempotence=False)
    assert [record.value for record in read(bootstrap, topic, 3)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", CODECS)
def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, COMPRESSIBLE, compression_type=codec, linger_ms=20)
    records = read(bootstrap, topic, len(COMPRESSIBLE))
    assert [record.value for record in records] == COMPRESSIBLE


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    values = [str(number).encode() for number in range(1000)]
    produce(bootstrap, topic, values, enable_idempotence=True)
    records = read(bootstrap, topic, len(values))
    assert [(record.offset, record.value) for record in records] == list(enumerate(values))


def test_order_within_each_partition(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=4)
    with producer(bootstrap) as client:
        for number in range(500):
            client.send(topic, b"%d" % number, b"%d" % (number % 17))
        client.flush(20)
    last: dict[bytes, int] = {}
    with consumer(bootstrap, topic) as client:
        for record in take(client, 500):
            assert last.get(record.key, -1) < int(record.value)
            last[record.key] = int(record.value)


def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with producer(bootstrap, linger_ms=50) as client:
        for number in range(10):
            client.send(topic, b"v", partition=0, timestamp_ms=TIMESTAMP_MS + number * 1000)
        client.flush(20)
    partition = TopicPartition(topic, 0)
    with consumer(bootstrap) as client:
        found = client.offsets_for_times({partition: TIMESTAMP_MS + 4500})
        assert found[partition][:2] == (5, TIMESTAMP_MS + 5000)
        assert client.offsets_for_times({partition: TIMESTAMP_MS * 2}) == {partition: None}
        assert client.beginning_offsets([partition]) == {partition: 0}
        assert client.end_offsets([partition]) == {partition: 10}


def test_group_shares_partitions(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic, partitions=4)
    settings = {"group_id": group, "heartbeat_interval_ms": 200}
    deadline = time.monotonic() + 20
    with consumer(bootstrap, topic, **settings) as one:
        with consumer(bootstrap, topic, **settings) as two:
            while {len(one.assignment()), len(two.assignment())} != {2}:
                one.poll(50)
                two.poll(50)
                assert time.monotonic() < deadline
            assert one.assignment().isdisjoint(two.assignment())
        while len(one.assignment()) != 4:
            one.poll(50)
            assert time.monotonic() < deadline


def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    create(own_broker.bootstrap, topic)
    produce(own_broker.bootstrap, topic, [b"a", b"b", b"c", b"d"])
    settings = {"group_id": group, "enable_auto_commit": False}
    with consumer(own_broker.bootstrap, topic, **settings) as client:
        take(client, 2)
        client.commit({TopicPartition(topic, 0): OffsetAndMetadata(2, "half of it", -1)})
    own_broker.kill()
    own_broker.start()
    with consumer(own_broker.bootstrap, topic, **settings) as client:
        assert [record.value for record in take(client, 2)] == [b"c", b"d"]


def test_quotas(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with limited(bootstrap, topic):
        with producer(bootstrap, client_id=topic) as client, takes_time():
            for value in [*VALUES, b"last"]:
                client.send(topic, value, partition=0)
            client.flush(20)
        with consumer(bootstrap, client_id=topic) as client, takes_time():
            client.assign([TopicPartition(topic, 0)])
            records = take(client, len(VALUES) + 1)
    assert [record.value for record in records] == [*VALUES, b"last"]


def test_fetch_sessions(broker: BrokerProcess, topic: str) -> None:
    create(broker.bootstrap, topic, partitions=3)
    with producer(broker.bootstrap) as client:
        for partition in range(3):
            client.send(topic, b"first", partition=partition)
        client.flush(20)
    before = open_sessions(broker)  # those of clients that have gone are there for a while
    with consumer(broker.bootstrap, topic) as client:
        take(client, 3)
        assert open_sessions(broker) == before + 1
        produce(broker.bootstrap, topic, [b"second"])
        (record,) = take(client, 1)
        assert (record.partition, record.value) == (0, b"second")


def open_sessions(broker: BrokerProcess) -> int:
    with urlopen(f"http://{broker.http}/metrics") as page:
        lines = page.read().decode().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith("tidemark_fetch_sessions "))
    return int(float(value))


def test_automatic_topic(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, [b"first use"])
    assert [record.value for record in read(bootstrap, topic, 1)] == [b"first use"]


def test_delete_records(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    for value in (b"a", b"b", b"c"):
        produce(bootstrap, topic, [value])
    partition = TopicPartition(topic, 0)
    with admin(bootstrap) as client:
        client.delete_records({partition: 2})
    with consumer(bootstrap) as client:
        assert client.beginning_offsets([partition]) == {partition: 2}


def test_record_too_large(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, configs={"max.message.bytes": "1000"})
    with producer(bootstrap) as client, pytest.raises(MessageSizeTooLargeError):
        client.send(topic, b"x" * 5000).get(20)


def test_group_admin(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a"])
    with consumer(bootstrap, topic, group_id=group, enable_auto_commit=False) as client:
        take(client, 1)
        client.commit()
        with admin(bootstrap) as manager:
            assert group in str(manager.list_groups())
            assert "Stable" in str(manager.describe_groups([group]))


def test_failover(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)
    with producer(cluster.bootstrap, retry_backoff_ms=50) as client:
        sent = []
        for number in range(failover.COUNT):
            if number == failover.KILL_AT:
                failover.kill_leader(cluster, topic)
            partition = failover.partition_of(number)
            sent.append(client.send(topic, failover.value_of(number), partition=partition))
            time.sleep(0.001)
        client.flush(60)
        for future in sent:
            future.get(10)
    with consumer(cluster.bootstrap) as client:
        client.assign([TopicPartition(topic, n) for n in range(failover.PARTITIONS)])
        records = take(client, failover.COUNT)
    failover.check_all_there((record.partition, record.value) for record in records)


def test_moving(cluster: ProcessCluster, topic: str) -> None:
    sent = []
    with (
        moving.moving(cluster, topic) as moves,
        producer(cluster.bootstrap, retry_backoff_ms=20) as client,
    ):
        for number in moves.numbers():
            sent.append(client.send(topic, moving.value_of(number), partition=0))
            time.sleep(0.001)
        client.flush(30)
        for future in sent:
            future.get(10)
    with consumer(cluster.bootstrap) as client:
        client.assign([TopicPartition(topic, 0)])
        records = take(client, len(sent))
    moving.check_each_once(len(sent), (record.value for record in records))


def test_preferred_leaders_are_elected(cluster: ProcessCluster, topic: str) -> None:
    moving.create(cluster, topic)
    leader, _ = moving.leave_home(cluster, topic)
    with admin(cluster.bootstrap) as client:
        client.elect_leaders(PREFERRED, {topic: [0]}, timeout_ms=20_000)
        assert moving.leader_of(cluster, topic) == leader
        answer = client.elect_leaders(PREFERRED, {topic: [0]}, raise_errors=False)
    ((found,),) = [each.partition_result for each in answer.replica_election_results]
    assert (found.partition_id, found.error_code) == (0, ELECTION_NOT_NEEDED)
    assert found.error_message == f"broker {leader} leads it already"


def test_replicas_are_reassigned(cluster: ProcessCluster, topic: str) -> None:
    at = TopicPartition(topic, 0)
    with admin(cluster.bootstrap) as client:
        client.create_topics([NewTopic(topic, replica_assignments={0: [1, 2]})])
        with producer(cluster.bootstrap) as writer:
            writer.send(topic, b"before", partition=0).get(10)
            assert client.alter_partition_reassignments({at: [3, 2]}) == {at: None}
            deadline = time.monotonic() + 20
            while client.list_partition_reassignments():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            writer.send(topic, b"after", partition=0).get(10)
        (described,) = client.describe_topics([topic])
        (partition,) = described["partitions"]
        assert (partition["replica_nodes"], set(partition["isr_nodes"])) == ([3, 2], {3, 2})
        refused = client.alter_partition_reassignments({at: [3, 9]})
        assert refused == {at: InvalidReplicationAssignmentError}
        assert client.alter_partition_reassignments({at: None}) == {
            at: NoReassignmentInProgressError
        }
    with consumer(cluster.bootstrap) as reader:
        reader.assign([at])
        assert [record.value for record in take(reader, 2)] == [b"before", b"after"]


def test_group_failover(cluster: ProcessCluster, topic: str, group: str) -> None:
    group_failover.fill(cluster, topic)
    witness = group_failover.Witness()

    def commit(client: Any) -> bool:
        """Whether all that was read is committed now."""
        offsets = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in witness.positions.items()
        }
        try:
            client.commit(offsets, timeout_ms=5_000)
        except KafkaError:
            return False
        witness.acknowledged((at.partition, each.offset) for at, each in offsets.items())
        return witness.is_committed

    def read(client: Any) -> None:
        found = client.poll(timeout_ms=200, max_records=group_failover.COMMIT_EVERY)
        for records in found.values():
            for record in records:
                witness.read(record.partition, record.offset, record.value)

    settings = {"group_id": group, "enable_auto_commit": False, "retry_backoff_ms": 50}
    with consumer(cluster.bootstrap, topic, **settings) as client:
        while witness.count < group_failover.KILL_AT:
            read(client)
            commit(client)
        group_failover.kill_coordinator(cluster, group)
        while not witness.is_done:
            read(client)
            commit(client)
        while not commit(client):
            read(client)
        found = {n: client.committed(TopicPartition(topic, n)) for n in witness.positions}
        witness.check_commits(found.items())
