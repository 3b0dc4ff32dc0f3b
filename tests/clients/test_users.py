"""Users that were made by request log in with each client, at each broker of a cluster, whatever
has become of the brokers since."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialDeletion as KafkaPythonDeletion
from kafka.admin import UserScramCredentialUpsertion as KafkaPythonUpsertion

from tests.clients.refusals import REFUSALS
from tidemark.client import ClientSettings, Sasl
from tidemark.client.blocking import open_client
from tidemark.testing import BlockingCluster, open_blocking_cluster

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
PASSWORD = "an ünusual password"
SETTINGS = {"users": "admin:secret", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def started() -> Iterator[BlockingCluster]:
    with open_blocking_cluster(brokers=3, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: BlockingCluster) -> Iterator[BlockingCluster]:
    """Three brokers; whichever a test has killed is started again after it."""
    yield started
    started.start()


def settings_of_librdkafka(
    bootstrap: str, user: str, password: str, mechanism: str
) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


# kafka-python and aiokafka ship no types: what they take and hand out is `Any`.
def settings_in_python(bootstrap: str, user: str, password: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
        "request_timeout_ms": 4000,
    }


def with_librdkafka(bootstrap: str, user: str, password: str, mechanism: str) -> None:
    settings = settings_of_librdkafka(bootstrap, user, password, mechanism)
    AdminClient(settings).list_topics(timeout=4)


def with_kafka_python(bootstrap: str, user: str, password: str, mechanism: str) -> None:
    settings = settings_in_python(bootstrap, user, password, mechanism)
    with closing(KafkaAdminClient(**settings, bootstrap_timeout_ms=4000)) as client:
        client.list_topics()


def with_aiokafka(bootstrap: str, user: str, password: str, mechanism: str) -> None:
    async def list_topics() -> None:
        client = AIOKafkaAdminClient(**settings_in_python(bootstrap, user, password, mechanism))
        try:
            await client.start()
            await client.list_topics()
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(list_topics(), 20))


def with_tidemark(bootstrap: str, user: str, password: str, mechanism: str) -> None:
    settings = ClientSettings(sasl=Sasl(mechanism, user, password))
    with open_client(bootstrap, settings=settings) as client:
        client.run(client.admin.list_topics)


LogIn = Callable[[str, str, str, str], None]
CLIENTS: list[LogIn] = [with_librdkafka, with_kafka_python, with_aiokafka, with_tidemark]
TAKES_SHORT_SALTS: list[LogIn] = [with_librdkafka, with_kafka_python, with_aiokafka]
"""Ours takes none of less than 12 bytes."""
FINDS_ANOTHER: list[LogIn] = [with_librdkafka, with_tidemark]
"""The admin clients of the others ask a broker that is gone for topics, and then nobody else."""
every_client = pytest.mark.parametrize("log_in", CLIENTS)


def set_user(cluster: BlockingCluster, user: str, **how: Any) -> None:
    settings = ClientSettings(sasl=Sasl("PLAIN", "admin", "secret"))
    with open_client(cluster.bootstrap, settings=settings) as client:
        client.run(lambda: client.admin.set_user(user, PASSWORD, **how))
    cluster.wait_caught_up()


@every_client
def test_a_user_logs_in_at_each_broker_by_the_mechanism_it_has(
    cluster: BlockingCluster, topic: str, log_in: LogIn
) -> None:
    set_user(cluster, topic, mechanisms=[SHA_512], iterations=8192)
    for node in cluster.nodes:
        log_in(cluster.bootstrap_of(node), topic, PASSWORD, SHA_512)
    for password, mechanism in ((PASSWORD, SHA_256), (PASSWORD, "PLAIN"), ("guess", SHA_512)):
        with pytest.raises(REFUSALS):
            log_in(cluster.bootstrap_of(1), topic, password, mechanism)


def test_users_outlive_leaders_and_restarts(cluster: BlockingCluster, topic: str) -> None:
    set_user(cluster, topic)
    killed = cluster.controller
    assert killed is not None
    cluster.kill(killed)
    cluster.wait_for(lambda: cluster.controller not in (None, killed), "another one leads")
    left = [node for node in cluster.nodes if node != killed]
    for node in left:
        for log_in in FINDS_ANOTHER:
            log_in(cluster.bootstrap_of(node), topic, PASSWORD, SHA_256)
    later = f"{topic}-later"
    settings = ClientSettings(sasl=Sasl(SHA_256, "admin", "secret"))
    with open_client(cluster.bootstrap_of(left[0]), settings=settings) as client:
        client.run(lambda: client.admin.set_user(later, PASSWORD))
    cluster.start(killed)
    cluster.wait_caught_up()
    cluster.restart()
    cluster.wait_caught_up()
    for node in cluster.nodes:
        for mechanism in (SHA_256, SHA_512):
            for user in (topic, later):
                for log_in in CLIENTS:
                    log_in(cluster.bootstrap_of(node), user, PASSWORD, mechanism)
        for mechanism in ("PLAIN", SHA_256, SHA_512):
            with_librdkafka(cluster.bootstrap_of(node), "admin", "secret", mechanism)


def librdkafka(cluster: BlockingCluster) -> AdminClient:
    return AdminClient(settings_of_librdkafka(cluster.bootstrap, "admin", "secret", SHA_256))


def altered(admin: AdminClient, *alterations: UserScramCredentialAlteration) -> dict[str, int]:
    """The codes, by user; 0 is none."""
    codes = {}
    for user, future in admin.alter_user_scram_credentials(list(alterations)).items():
        try:
            future.result(10)
            codes[user] = 0
        except KafkaException as error:
            codes[user] = error.args[0].code()
    return codes


def described(admin: AdminClient, user: str) -> dict[ScramMechanism, int]:
    found = admin.describe_user_scram_credentials([user])
    assert isinstance(found, dict)
    infos = found[user].result(10).scram_credential_infos
    return {each.mechanism: each.iterations for each in infos}


def test_librdkafka_sets_describes_and_deletes_users(cluster: BlockingCluster, topic: str) -> None:
    admin = librdkafka(cluster)
    in_256 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 10_000)
    in_512 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
    # A salt this short is what its own tests set.
    short = UserScramCredentialUpsertion(topic, in_256, PASSWORD.encode(), b"salt")
    assert altered(admin, short) == {topic: 0}
    # By itself: in one request, confluent-kafka has the salt of another for who is given none.
    drawn = UserScramCredentialUpsertion(f"{topic}-b", in_512, PASSWORD.encode())
    assert altered(admin, drawn) == {f"{topic}-b": 0}
    cluster.wait_caught_up()
    assert described(admin, topic) == {ScramMechanism.SCRAM_SHA_256: 10_000}
    for node in cluster.nodes:
        for log_in in TAKES_SHORT_SALTS:
            log_in(cluster.bootstrap_of(node), topic, PASSWORD, SHA_256)
        for log_in in CLIENTS:
            log_in(cluster.bootstrap_of(node), f"{topic}-b", PASSWORD, SHA_512)
    gone = altered(admin, UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_256))
    assert gone == {topic: 0}
    cluster.wait_caught_up()
    with pytest.raises(KafkaException) as unknown:
        described(admin, topic)
    assert unknown.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND
    with pytest.raises(KafkaException):
        with_librdkafka(cluster.bootstrap, topic, PASSWORD, SHA_256)


def test_librdkafka_is_told_what_cannot_be(cluster: BlockingCluster, topic: str) -> None:
    admin, sha_256 = librdkafka(cluster), ScramMechanism.SCRAM_SHA_256
    few = ScramCredentialInfo(sha_256, 4_095)
    codes = altered(
        admin,
        UserScramCredentialUpsertion(topic, few, b"pw", b"salt"),
        UserScramCredentialDeletion(f"{topic}-b", sha_256),
        UserScramCredentialUpsertion("admin", ScramCredentialInfo(sha_256, 4_096), b"pw", b"salt"),
    )
    assert codes == {
        topic: KafkaError.UNACCEPTABLE_CREDENTIAL,
        f"{topic}-b": KafkaError.RESOURCE_NOT_FOUND,
        "admin": KafkaError.POLICY_VIOLATION,
    }
    with_librdkafka(cluster.bootstrap, "admin", "secret", SHA_256)


def test_kafka_python_sets_and_deletes_users(cluster: BlockingCluster, topic: str) -> None:
    settings = settings_in_python(cluster.bootstrap, "admin", "secret", SHA_256)
    with closing(KafkaAdminClient(**settings)) as admin:
        made = admin.alter_user_scram_credentials([KafkaPythonUpsertion(topic, SHA_512, PASSWORD)])
        assert made == {topic: None}
        cluster.wait_caught_up()
        for log_in in CLIENTS:
            log_in(cluster.bootstrap, topic, PASSWORD, SHA_512)
        found = admin.describe_user_scram_credentials([topic])
        assert [info["iterations"] for info in found[topic]["credential_infos"]] == [4096]
        gone = admin.alter_user_scram_credentials([KafkaPythonDeletion(topic, SHA_512)])
        assert gone == {topic: None}
