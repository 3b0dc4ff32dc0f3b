"""confluent-kafka, the Python face of librdkafka, unmodified."""

from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)

from tests.clients import failover, group_failover, moving
from tests.clients.librdkafka import admin, create, group_consumer, produce, read, take, wait_for
from tests.clients.quotas import VALUES, limited, takes_time
from tests.clients.samples import CODECS, COMPRESSIBLE, SAMPLES, TIMESTAMP_MS
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster


def test_topics(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=3)
    client = admin(bootstrap)
    assert len(client.list_topics(timeout=10).topics[topic].partitions) == 3
    client.create_partitions([NewPartitions(topic, 5)])[topic].result(10)
    wait_for(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == 5)
    with pytest.raises(KafkaException) as refused:
        create(bootstrap, topic)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    client.delete_topics([topic])[topic].result(10)
    wait_for(lambda: topic not in client.list_topics(timeout=10).topics)


def test_configs(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, configs={"retention.ms": "1000000"})
    client = admin(bootstrap)
    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
        ],
    )
    for future in client.incremental_alter_configs([change]).values():
        future.result(10)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = client.describe_configs([resource])[resource].result(10)
    assert configs["retention.ms"].value == "1000000"
    assert configs["cleanup.policy"].value == "delete,compact"
    assert configs["segment.bytes"].is_default


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    for sample in SAMPLES:
        producer.produce(
            topic,
            sample.value,
            sample.key,
            partition=0,
            headers=list(sample.headers),
            timestamp=sample.timestamp_ms,
        )
    assert producer.flush(20) == 0
    messages = read(bootstrap, topic, len(SAMPLES))
    assert [message.offset() for message in messages] == list(range(len(SAMPLES)))
    for sample, message in zip(SAMPLES, messages, strict=True):
        assert message.key() == sample.key
        assert message.value() == sample.value
        assert tuple(message.headers() or ()) == sample.headers
        assert message.timestamp()[1] == sample.timestamp_ms


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap: str, topic: str, acks: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a", b"b", b"c"], acks=acks)
    assert [message.value() for message in read(bootstrap, topic, 3)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", CODECS)
def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, COMPRESSIBLE, **{"compression.type": codec, "linger.ms": 50})
    messages = read(bootstrap, topic, len(COMPRESSIBLE))
    assert [message.value() for message in messages] == COMPRESSIBLE


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    values = [str(number).encode() for number in range(2000)]
    offsets = produce(bootstrap, topic, values, **{"enable.idempotence": True, "linger.ms": 1})
    assert offsets == list(range(2000))
    assert [message.value() for message in read(bootstrap, topic, 2000)] == values


def test_order_within_each_partition(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=4)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(1000):
        producer.produce(topic, str(number).encode(), str(number % 17).encode())
    assert producer.flush(20) == 0
    last: dict[bytes, int] = {}
    for message in read(bootstrap, topic, 1000, partitions=4):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        assert last.get(key, -1) < int(value)
        last[key] = int(value)


def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for number in range(10):  # one batch: the answer is a record inside it
        producer.produce(topic, b"v", partition=0, timestamp=TIMESTAMP_MS + number * 1000)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    at = consumer.offsets_for_times([TopicPartition(topic, 0, TIMESTAMP_MS + 4500)], timeout=10)
    after = consumer.offsets_for_times(
        [TopicPartition(topic, 0, TIMESTAMP_MS + 60_000)], timeout=10
    )
    assert (at[0].offset, after[0].offset) == (5, -1)
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 10)
    consumer.close()
    partition = TopicPartition(topic, 0)
    client = admin(bootstrap)
    listed = client.list_offsets(
        {partition: OffsetSpec.max_timestamp()}, isolation_level=IsolationLevel.READ_UNCOMMITTED
    )
    assert listed[partition].result(10).offset == 9


def test_group_shares_partitions(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic, partitions=4)
    one = group_consumer(bootstrap, group, topic)
    wait_for(lambda: one.poll(0.1) is None and len(one.assignment()) == 4)
    two = group_consumer(bootstrap, group, topic)

    def shared() -> bool:
        one.poll(0.1)
        two.poll(0.1)
        return len(one.assignment()) == len(two.assignment()) == 2

    wait_for(shared)
    two.close()
    wait_for(lambda: one.poll(0.1) is None and len(one.assignment()) == 4)
    one.close()


def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    create(own_broker.bootstrap, topic)
    produce(own_broker.bootstrap, topic, [b"a", b"b", b"c", b"d"])
    consumer = group_consumer(own_broker.bootstrap, group, topic, **{"enable.auto.commit": False})
    first = take(consumer, 2)
    consumer.commit(message=first[-1], asynchronous=False)
    consumer.close()
    own_broker.kill()
    own_broker.start()
    again = group_consumer(own_broker.bootstrap, group, topic)
    assert [message.value() for message in take(again, 2)] == [b"c", b"d"]
    again.close()


def test_static_member(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic, partitions=2)
    rebalances: list[int] = []

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        rebalances.append(len(partitions))

    watcher = group_consumer(bootstrap, group, topic, **{"group.instance.id": "watcher"})
    watcher.subscribe([topic], on_assign=assigned)
    static = group_consumer(bootstrap, group, topic, **{"group.instance.id": "static"})

    def both() -> bool:
        watcher.poll(0.1)
        static.poll(0.1)
        return len(watcher.assignment()) == len(static.assignment()) == 1

    wait_for(both)
    seen = len(rebalances)
    static.close()  # a static member does not leave
    back = group_consumer(bootstrap, group, topic, **{"group.instance.id": "static"})

    def returned() -> bool:
        watcher.poll(0.1)
        back.poll(0.1)
        return len(back.assignment()) == 1

    wait_for(returned)
    assert len(rebalances) == seen
    back.close()
    watcher.close()


def test_quotas(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    told: list[float] = []
    settings = {"bootstrap.servers": bootstrap, "client.id": topic}
    with limited(bootstrap, topic):
        producer = Producer(
            {**settings, "throttle_cb": lambda event: told.append(event.throttle_time)}
        )
        for value in VALUES:
            producer.produce(topic, value, partition=0)
        with takes_time():
            producer.flush(20)
            producer.produce(topic, b"last", partition=0)
            assert producer.flush(20) == 0
        assert max(told) > 0
        with takes_time():
            consumer = Consumer({**settings, "group.id": "unused"})
            consumer.assign([TopicPartition(topic, 0, 0)])
            try:
                messages = take(consumer, len(VALUES) + 1)
            finally:
                consumer.close()
    assert [message.value() for message in messages] == [*VALUES, b"last"]


def test_automatic_topic(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, [b"first use"])
    assert [message.value() for message in read(bootstrap, topic, 1)] == [b"first use"]


def test_delete_records(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    for value in (b"a", b"b", b"c"):
        produce(bootstrap, topic, [value])
    partition = TopicPartition(topic, 0, 2)
    client = admin(bootstrap)
    deleted: Any = client.delete_records([partition])[partition].result(10)
    assert deleted.low_watermark == 2
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (2, 3)
    consumer.close()


def test_record_too_large(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, configs={"max.message.bytes": "1000"})
    with pytest.raises(KafkaException) as refused:
        produce(bootstrap, topic, [b"x" * 5000])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_group_admin(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a", b"b"])
    consumer = group_consumer(bootstrap, group, topic)
    consumer.commit(message=take(consumer, 2)[-1], asynchronous=False)
    client = admin(bootstrap)
    listed = client.list_consumer_groups().result(10)
    assert group in [found.group_id for found in listed.valid]
    described = client.describe_consumer_groups([group])[group].result(10)
    assert described.state.name == "STABLE"
    assert len(described.members) == 1
    request = ConsumerGroupTopicPartitions(group)
    offsets = client.list_consumer_group_offsets([request])[group].result(10)
    assert [(found.topic, found.offset) for found in offsets.topic_partitions] == [(topic, 2)]
    with pytest.raises(KafkaException) as refused:
        client.delete_consumer_groups([group])[group].result(10)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    consumer.close()
    client.delete_consumer_groups([group])[group].result(10)


def test_failover(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(failover.COUNT):
        if number == failover.KILL_AT:
            failover.kill_leader(cluster, topic)
        partition = failover.partition_of(number)
        value = failover.value_of(number)
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
        producer.poll(0.001)
    assert producer.flush(60) == 0
    assert not refused
    messages = read(cluster.bootstrap, topic, failover.COUNT, failover.PARTITIONS)
    failover.check_all_there(
        (place, held)
        for message in messages
        if (place := message.partition()) is not None and (held := message.value()) is not None
    )


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_moving(cluster: ProcessCluster, topic: str, *, is_idempotent: bool) -> None:
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            refused.append(error)

    # Without idempotence it keeps the order only with one request at a time.
    settings = {"enable.idempotence": True} if is_idempotent else {"max.in.flight": 1}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **settings})
    count = 0
    with moving.moving(cluster, topic) as moves:
        for number in moves.numbers():
            value = moving.value_of(number)
            producer.produce(topic, value, partition=0, on_delivery=delivered)
            producer.poll(0.001)
            count = number + 1
        assert producer.flush(30) == 0
    assert not refused
    messages = read(cluster.bootstrap, topic, count)
    moving.check_each_once(count, (message.value() for message in messages))


def test_preferred_leaders_are_elected(cluster: ProcessCluster, topic: str) -> None:
    moving.create(cluster, topic)
    home, unknown = TopicPartition(topic, 0), TopicPartition(topic, 9)
    leader, other = moving.leave_home(cluster, topic)
    client = admin(cluster.bootstrap)
    elected = client.elect_leaders(ElectionType.PREFERRED, [home, unknown]).result(20)
    assert elected[home] is None
    assert elected[unknown].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert moving.leader_of(cluster, topic) == leader != other
    again = client.elect_leaders(ElectionType.PREFERRED, [home]).result(20)
    assert again[home].code() == KafkaError.ELECTION_NOT_NEEDED
    unclean = client.elect_leaders(ElectionType.UNCLEAN, [home]).result(20)
    assert unclean[home].code() == KafkaError.ELECTION_NOT_NEEDED
    everything = client.elect_leaders(ElectionType.PREFERRED, None).result(20)
    assert home not in everything


def test_group_failover(cluster: ProcessCluster, topic: str, group: str) -> None:
    group_failover.fill(cluster, topic)
    witness = group_failover.Witness()

    def read(consumer: Consumer) -> None:
        for message in consumer.consume(group_failover.COMMIT_EVERY, 0.2):
            assert message.error() is None, message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            witness.read(partition, offset, message.value())

    def commit(consumer: Consumer) -> bool:
        """Whether all that was read is committed now."""
        offsets = [TopicPartition(topic, *position) for position in witness.positions.items()]
        try:
            committed = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return False
        witness.acknowledged((each.partition, each.offset) for each in committed if not each.error)
        return witness.is_committed

    settings = {"enable.auto.commit": False}
    with closing(group_consumer(cluster.bootstrap, group, topic, **settings)) as consumer:
        while witness.count < group_failover.KILL_AT:
            read(consumer)
            commit(consumer)
        group_failover.kill_coordinator(cluster, group)
        while not witness.is_done:
            read(consumer)
            commit(consumer)
        wait_for(lambda: commit(consumer))
        partitions = [TopicPartition(topic, number) for number in range(failover.PARTITIONS)]
        found = consumer.committed(partitions, 10)
        witness.check_commits((each.partition, each.offset) for each in found)
