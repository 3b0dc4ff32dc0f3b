"""What ACLs leave of a cluster to a user of librdkafka, beyond producing and consuming."""

from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.acls import GROUP, TOPIC, TRANSACTIONAL_ID, Acls
from tests.clients.guests import Login, is_refused
from tests.clients.guests.with_librdkafka import (
    LIBRARY,
    code_of,
    reading,
    settings_of,
)
from tidemark.client import ErrorCode, Operation, PatternType

CONSUMER = {"group.protocol": "consumer"}


def test_all_topics_are_those_that_may_be_described(acls: Acls, alice: Login, topic: str) -> None:
    shown = [f"{topic}-{number}" for number in range(2)]
    for name in (topic, *shown):
        acls.create_topic(name)
    client = AdminClient(settings_of(alice))
    assert client.list_topics(timeout=10).topics == {}
    acls.allow(alice, TOPIC, f"{topic}-", Operation.DESCRIBE, pattern=PatternType.PREFIXED)
    assert sorted(client.list_topics(timeout=10).topics) == shown
    hidden = client.list_topics(topic, timeout=10).topics[topic]
    assert hidden.error is not None
    assert hidden.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_topic_is_made_by_first_use_where_it_may_be_created(
    acls: Acls, alice: Login, topic: str
) -> None:
    acls.allow(alice, TOPIC, topic, Operation.WRITE)
    with LIBRARY.writing(alice, topic) as write, is_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        write(b"never")
    assert topic not in acls.topics()
    acls.allow(alice, TOPIC, topic, Operation.CREATE)
    with LIBRARY.writing(alice, topic) as write:
        write(b"first use")
    assert topic in acls.topics()


def test_a_member_of_the_consumer_protocol(
    acls: Acls, alice: Login, bob: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(bob, TOPIC, topic, Operation.WRITE)
    with LIBRARY.writing(bob, topic) as write:
        write(b"1")
        with (
            is_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED),
            reading(alice, topic, group, **CONSUMER) as receive,
        ):
            receive()
        acls.allow(alice, GROUP, group, Operation.READ)
        with (
            is_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            reading(alice, topic, group, **CONSUMER) as receive,
        ):
            receive()
        acls.allow(alice, TOPIC, topic, Operation.READ)
        with reading(alice, topic, group, **CONSUMER) as receive:
            assert receive() == b"1"
            acls.remove(alice, TOPIC)
            write(b"2")
            with is_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                receive()
        acls.allow(alice, TOPIC, topic, Operation.READ)
        with reading(alice, topic, group, **CONSUMER) as receive:
            assert receive() == b"2"
            acls.remove(alice, GROUP)
            with is_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED):
                receive()


def test_offsets_in_a_transaction_need_the_group(
    acls: Acls, alice: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(alice, TOPIC, topic, Operation.READ, Operation.WRITE)
    acls.allow(alice, TRANSACTIONAL_ID, topic, Operation.WRITE)
    acls.allow(alice, GROUP, group, Operation.READ)
    settings = {**settings_of(alice), "group.id": group}
    with closing(Consumer(settings)) as consumer:
        producer = Producer({**settings_of(alice), "transactional.id": topic})
        producer.init_transactions(10)
        at = [TopicPartition(topic, 0, 1)]

        def commit() -> None:
            producer.begin_transaction()
            producer.produce(topic, b"v")
            of_group = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(at, of_group, 10)
            producer.commit_transaction(10)

        commit()
        assert consumer.committed([TopicPartition(topic, 0)], 10)[0].offset == 1
        acls.remove(alice, GROUP)
        with pytest.raises(KafkaException) as refused:
            commit()
        assert code_of(refused.value) == KafkaError.GROUP_AUTHORIZATION_FAILED
        producer.abort_transaction(10)
        acls.allow(alice, GROUP, group, Operation.READ)
        at[0].offset = 2
        commit()
        assert consumer.committed([TopicPartition(topic, 0)], 10)[0].offset == 2
