"""What ACLs allow, users do with each client library, and nothing else."""

import pytest
from kafka import KafkaConsumer

from tests.clients.acls import GROUP, TOPIC, TRANSACTIONAL_ID, Acls
from tests.clients.guests import (
    Library,
    Login,
    is_refused,
    with_aiokafka,
    with_commands,
    with_kafka_python,
    with_librdkafka,
    with_tidemark,
)
from tidemark.client import ErrorCode, Operation, PatternType

TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
ID_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

LIBRARIES = {
    "librdkafka": with_librdkafka.LIBRARY,
    "kafka-python": with_kafka_python.LIBRARY,
    "aiokafka": with_aiokafka.LIBRARY,
    "tidemark": with_tidemark.LIBRARY,
    "cli": with_commands.TIDEMARK,
    "kcat": with_commands.KCAT,
}
WITH_TRANSACTIONS = {
    name: library for name, library in LIBRARIES.items() if library.transacting is not None
}
SAYING_WHICH_TOPIC = {
    name: library for name, library in LIBRARIES.items() if name != "kafka-python"
}

with_each = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


@with_each
def test_a_user_without_acls_is_told_what_is_refused(
    library: Library, acls: Acls, alice: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(alice, TOPIC, "another", Operation.WRITE)  # Without any, it gets no producer id.
    with is_refused(TOPIC_REFUSED), library.writing(alice, topic) as send:
        send(b"never")
    acls.allow(alice, TOPIC, topic, Operation.READ)
    with is_refused(GROUP_REFUSED), library.reading(alice, topic, group) as receive:
        receive()


@pytest.mark.parametrize("library", SAYING_WHICH_TOPIC.values(), ids=SAYING_WHICH_TOPIC)
def test_a_member_of_a_group_is_told_which_topic_it_may_not_read(
    library: Library, acls: Acls, alice: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(alice, GROUP, group, Operation.READ)
    with is_refused(TOPIC_REFUSED), library.reading(alice, topic, group) as receive:
        receive()


def test_kafka_python_logs_it_and_reads_nothing(
    acls: Acls, alice: Login, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    acls.create_topic(topic)
    acls.allow(alice, GROUP, group, Operation.READ)
    with KafkaConsumer(topic, **with_kafka_python.settings_of(alice), group_id=group) as consumer:
        assert consumer.poll(2000) == {}
    assert f"Topic {topic} is not authorized for this client" in caplog.text


@with_each
def test_what_acls_allow_goes_on_until_they_are_gone(
    library: Library, acls: Acls, alice: Login, bob: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(alice, TOPIC, topic[:-3], Operation.WRITE, pattern=PatternType.PREFIXED)
    acls.allow(alice, TOPIC, topic, Operation.READ)
    acls.allow(alice, GROUP, "*", Operation.READ)
    acls.allow(bob, TOPIC, "*", Operation.READ, Operation.WRITE)
    acls.allow(bob, GROUP, f"{group}-", Operation.READ, pattern=PatternType.PREFIXED)
    with (
        library.writing(bob, topic) as bob_sends,
        library.reading(bob, topic, f"{group}-bob") as bob_receives,
    ):
        with (
            library.writing(alice, topic) as send,
            library.writing(alice, topic, is_idempotent=True) as send_once,
            library.reading(alice, topic, group) as receive,
        ):
            send(b"1")
            send_once(b"2")
            assert [receive(), receive()] == [b"1", b"2"]
            assert bob_receives() == b"1"
            acls.remove(alice, TOPIC)
            acls.allow(alice, TOPIC, "another", Operation.WRITE)
            bob_sends(b"3")
            for refused in (send, send_once):
                with is_refused(TOPIC_REFUSED):
                    refused(b"never")
            with is_refused(TOPIC_REFUSED):
                receive()
        bob_sends(b"4")
        assert [bob_receives(), bob_receives(), bob_receives()] == [b"2", b"3", b"4"]
    acls.allow(alice, TOPIC, topic, Operation.READ)
    with library.reading(alice, topic, group) as receive:
        assert receive() == b"3", "she goes on where she was"
        acls.remove(alice, GROUP)
        with is_refused(GROUP_REFUSED):
            receive()


@pytest.mark.parametrize("library", WITH_TRANSACTIONS.values(), ids=WITH_TRANSACTIONS)
def test_a_transaction_needs_acls_of_its_id_and_its_topic(
    library: Library, acls: Acls, alice: Login, bob: Login, topic: str, group: str
) -> None:
    acls.create_topic(topic)
    acls.allow(bob, TOPIC, topic, Operation.READ)
    acls.allow(bob, GROUP, group, Operation.READ)
    name = f"of-{topic}"
    assert library.transacting is not None
    acls.allow(alice, TOPIC, topic, Operation.WRITE)
    with is_refused(ID_REFUSED), library.transacting(alice, topic, name) as send:
        send(b"never")
    acls.allow(alice, TRANSACTIONAL_ID, "of-", Operation.WRITE, pattern=PatternType.PREFIXED)
    with library.transacting(alice, topic, name) as send:
        send(b"1")
        acls.remove(alice, TOPIC)
        with is_refused(TOPIC_REFUSED):
            send(b"never")
    acls.allow(alice, TOPIC, topic, Operation.WRITE)
    with library.transacting(alice, topic, name) as send:
        send(b"2")
        acls.remove(alice, TRANSACTIONAL_ID)
        with is_refused(ID_REFUSED):
            send(b"never")
    with library.reading(bob, topic, group) as receive:
        assert [receive(), receive()] == [b"1", b"2"]
