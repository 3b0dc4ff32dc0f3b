"""What clients ask for that cannot be: the protocol's error, a sentence, and nothing lost.

A zombie of a transaction and one left open are in `test_transactions.py` and
`test_transactions_in_clusters.py`; members that never sync send what no client library does, so
they are in `test_group_traps.py` and `test_joining_traps.py`.
"""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry
from confluent_kafka.admin import ConfigResource as LibrdkafkaResource
from confluent_kafka.admin import ResourceType as LibrdkafkaResourceType
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove
from kafka.errors import CommitFailedError, InvalidRecordError
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.clients.consumer_protocol import wait_for
from tests.clients.kafka_python import admin, consumer, create, producer

# A member that is put out is not to notice it before it commits.
SELDOM_MS = 20_000
IMPOSSIBLE = {"min.insync.replicas": "0"}
SENTENCE = "it takes a whole number, 1 or more"


class TestAConfigOutOfRange:
    def test_is_refused_to_librdkafka(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic)
        client = AdminClient({"bootstrap.servers": bootstrap})
        (name, value), *_ = IMPOSSIBLE.items()
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        kind = LibrdkafkaResourceType.TOPIC
        change = LibrdkafkaResource(kind, topic, incremental_configs=[entry])
        with pytest.raises(KafkaException) as caught:
            client.incremental_alter_configs([change])[change].result(10)
        assert caught.value.args[0].name() == "INVALID_CONFIG"
        assert SENTENCE in caught.value.args[0].str()
        described = client.describe_configs([LibrdkafkaResource(kind, topic)])
        (configs,) = (future.result(10) for future in described.values())
        assert configs[name].value == "1"

    def test_is_refused_to_kafka_python(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic)
        change = ConfigResource(ConfigResourceType.TOPIC, topic, configs=IMPOSSIBLE)
        with admin(bootstrap) as client:
            assert SENTENCE in str(client.alter_configs([change]))


class TestACommitOfAMemberThatIsNoneAnyMore:
    def test_is_refused_to_librdkafka(self, bootstrap: str, topic: str, group: str) -> None:
        create(bootstrap, topic)
        client = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.instance.id": "one",
                "heartbeat.interval.ms": SELDOM_MS,
                "enable.auto.commit": False,
            }
        )
        client.subscribe([topic])
        wait_for(lambda: client.poll(0.1) is None and bool(client.assignment()))
        with admin(bootstrap) as administrator:
            administrator.remove_group_members(group, [MemberToRemove(group_instance_id="one")])
        with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
            client.commit(offsets=[LibrdkafkaPartition(topic, 0, 1)], asynchronous=False)
        assert client.committed([LibrdkafkaPartition(topic, 0)], 10)[0].offset < 0
        client.close()

    def test_is_refused_to_kafka_python(self, bootstrap: str, topic: str, group: str) -> None:
        create(bootstrap, topic)
        at = TopicPartition(topic, 0)
        settings = {
            "group_id": group,
            "group_instance_id": "one",
            "heartbeat_interval_ms": SELDOM_MS,
            "session_timeout_ms": 2 * SELDOM_MS,
            "enable_auto_commit": False,
        }
        with consumer(bootstrap, topic, **settings) as client, admin(bootstrap) as administrator:
            wait_for(lambda: not client.poll(100) and bool(client.assignment()))
            administrator.remove_group_members(group, [MemberToRemove(group_instance_id="one")])
            with pytest.raises(CommitFailedError):
                client.commit({at: OffsetAndMetadata(1, "", -1)})
            assert at not in administrator.list_group_offsets(group)[group]


class TestACompactedTopicWithoutKeys:
    """What came with a key before is still there."""

    def test_is_refused_to_librdkafka(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic, configs={"cleanup.policy": "compact"})
        outcomes: list[str | None] = []
        client = Producer({"bootstrap.servers": bootstrap})
        for key in (b"key", None):
            client.produce(
                topic,
                b"value",
                key=key,
                on_delivery=lambda error, _: outcomes.append(error.name() if error else None),
            )
            client.flush(20)
        assert outcomes == [None, "INVALID_RECORD"]

    def test_is_refused_to_kafka_python(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic, configs={"cleanup.policy": "compact"})
        with producer(bootstrap) as client:
            assert client.send(topic, b"value", key=b"key").get(20).offset == 0
            with pytest.raises(InvalidRecordError):
                client.send(topic, b"value").get(20)
        with consumer(bootstrap) as reader:
            assert reader.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 1}
