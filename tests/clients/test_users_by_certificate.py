"""Clients that are who their certificates say: what ACLs and quotas of that user leave them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.broker.network.user_certificates import CA, NAMES, file_of
from tests.client.security.tls_proxy import CERTIFICATES
from tests.clients.quotas import RATE, VALUES, takes_time
from tidemark.client import (
    Acl,
    ClientSettings,
    ErrorCode,
    Operation,
    RequestError,
    ResourceType,
    Tls,
)
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing import open_blocking_cluster

CA_OF_BROKERS: Final = str(CERTIFICATES / "ca.pem")
SETTINGS: Final = {
    "listeners": "SSL://localhost:0",
    "ssl.certificate.location": str(CERTIFICATES / "localhost.pem"),
    "ssl.client.auth": "required",
    "ssl.ca.location": CA,
    "authorizer.class.name": "StandardAuthorizer",
    "super.users": f"User:{NAMES['admin']}",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "quota.window.num": "2",
}
OTHERS: Final = ["bob", "in-one", "with-nul", "of-two"]
"""Who is not alice, though some have her name in theirs."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with open_blocking_cluster(settings=SETTINGS) as cluster:
        yield f"localhost:{cluster.bootstrap.rpartition(':')[2]}"


def settings_of(name: str) -> ClientSettings:
    return ClientSettings(tls=Tls(ca_file=CA_OF_BROKERS, certificate_file=file_of(name)))


@pytest.fixture
def admin(bootstrap: str) -> Iterator[BlockingClient]:
    with open_client(bootstrap, settings=settings_of("admin")) as client:
        yield client


@pytest.fixture
def of_alice(admin: BlockingClient, topic: str) -> str:
    """A topic that she may write and read, in a group of its name."""
    admin.run(lambda: admin.admin.create_topic(topic, partitions=1))
    allowed = [
        (Operation.WRITE, ResourceType.TOPIC),
        (Operation.READ, ResourceType.TOPIC),
        (Operation.READ, ResourceType.GROUP),
    ]
    acls = [
        Acl(
            principal=f"User:{NAMES['alice']}",
            operation=operation,
            resource_type=resource_type,
            name=topic,
        )
        for operation, resource_type in allowed
    ]
    admin.run(lambda: admin.admin.create_acls(acls))
    return topic


def librdkafka(bootstrap: str, name: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": CA_OF_BROKERS,
        "ssl.certificate.location": file_of(name),
        "ssl.key.location": file_of(name),
        "log_level": 0,
    }


def write_with_librdkafka(bootstrap: str, name: str, topic: str, values: list[bytes]) -> int:
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            errors.append(error)

    one_by_one = {"batch.size": 20_000, "max.in.flight": 1}
    producer = Producer({**librdkafka(bootstrap, name), **one_by_one})
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(20) == 0
    return errors[0].code() if errors else 0


def write_with_tidemark(bootstrap: str, name: str, topic: str, values: list[bytes]) -> int:
    try:
        with (
            open_client(bootstrap, settings=settings_of(name)) as client,
            client.producer(batch_bytes=20_000, max_in_flight=1) as producer,
        ):
            for value in values:
                producer.send(topic, value)
    except RequestError as error:
        return error.code
    return 0


def read_with_librdkafka(bootstrap: str, name: str, topic: str) -> tuple[int, bytes | None]:
    own = {"group.id": topic, "auto.offset.reset": "earliest"}
    with closing(Consumer({**librdkafka(bootstrap, name), **own})) as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(20)
        assert message is not None, "nothing came"
        error = message.error()
        return (error.code(), None) if error is not None else (0, message.value())


def read_with_tidemark(bootstrap: str, name: str, topic: str) -> tuple[int, bytes | None]:
    try:
        with (
            open_client(bootstrap, settings=settings_of(name)) as client,
            client.consumer(topic, group=topic) as consumer,
        ):
            return 0, next(iter(consumer)).value
    except RequestError as error:
        return error.code, None


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (write_with_librdkafka, read_with_librdkafka),
        (write_with_tidemark, read_with_tidemark),
    ],
)
def test_what_one_certificates_user_may_do_another_may_not(
    bootstrap: str,
    of_alice: str,
    write: Callable[[str, str, str, list[bytes]], int],
    read: Callable[[str, str, str], tuple[int, bytes | None]],
) -> None:
    for name in OTHERS:
        # An idempotent producer begins with an id, which is for who may write somewhere.
        assert write(bootstrap, name, of_alice, [b"never"]) in (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ), name
    assert write(bootstrap, "alice", of_alice, [b"hers"]) == 0
    for name in OTHERS:
        code, _ = read(bootstrap, name, of_alice)
        assert code in (
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ), name
    assert read(bootstrap, "alice", of_alice) == (0, b"hers")


@pytest.mark.parametrize("write", [write_with_librdkafka, write_with_tidemark])
def test_a_quota_of_a_user_is_that_of_who_shows_its_certificate(
    admin: BlockingClient,
    bootstrap: str,
    of_alice: str,
    write: Callable[[str, str, str, list[bytes]], int],
) -> None:
    rates = {"producer_byte_rate": float(RATE)}
    user = NAMES["alice"]
    admin.run(lambda: admin.admin.alter_quotas(user=user, set=rates))
    try:
        with takes_time():
            assert write(bootstrap, "alice", of_alice, VALUES) == 0
    finally:
        admin.run(lambda: admin.admin.alter_quotas(user=user, remove=list(rates)))
