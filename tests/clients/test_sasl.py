"""Clients prove who they are, each in its own way; those that cannot are not served."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
)
from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as KafkaPythonResourceType
from kafka.errors import SecurityDisabledError

from tests.clients.refusals import REFUSALS
from tidemark.cli.main import run
from tidemark.client import ClientSettings, Sasl
from tidemark.client.blocking import connect, open_client
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidemark.testing.process import BrokerProcess, open_broker_process

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
USER, PASSWORD = "ada", "an ünusual password"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that has users."""
    data_dir: Path = tmp_path_factory.mktemp("sasl") / "data"
    with open_broker_process(data_dir, settings={"users": f"{USER}:{PASSWORD}"}) as process:
        yield process


def librdkafka(bootstrap: str, mechanism: str, password: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
            "sasl.password": password,
            "log_level": 0,
        }
    )


def with_librdkafka(bootstrap: str, mechanism: str, password: str) -> None:
    librdkafka(bootstrap, mechanism, password).list_topics(timeout=4)


# kafka-python and aiokafka ship no types: what they take and hand out is `Any`.
def _python_settings(bootstrap: str, mechanism: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
        "request_timeout_ms": 4000,
    }


def with_kafka_python(bootstrap: str, mechanism: str, password: str) -> None:
    settings = _python_settings(bootstrap, mechanism, password)
    with closing(KafkaAdminClient(**settings, bootstrap_timeout_ms=4000)) as client:
        client.list_topics()


def with_aiokafka(bootstrap: str, mechanism: str, password: str) -> None:
    async def list_topics() -> None:
        client = AIOKafkaAdminClient(**_python_settings(bootstrap, mechanism, password))
        try:
            await client.start()
            await client.list_topics()
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(list_topics(), 20))


def with_tidemark(bootstrap: str, mechanism: str, password: str) -> None:
    settings = ClientSettings(sasl=Sasl(mechanism, USER, password))
    with open_client(bootstrap, settings=settings) as client:
        client.run(client.admin.list_topics)


def with_tidemark_on_a_blocking_socket(bootstrap: str, mechanism: str, password: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    settings = ClientSettings(sasl=Sasl(mechanism, USER, password))
    with connect(host, int(port), settings) as connection:
        connection.request(MetadataRequest(topics=()), MetadataResponse)


def with_the_cli(bootstrap: str, mechanism: str, password: str) -> None:
    options = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }
    pairs = [part for name, value in options.items() for part in ("-X", f"{name}={value}")]
    if run([*pairs, "topic", "list"]):
        raise PermissionError


CLIENTS = [
    with_librdkafka,
    with_kafka_python,
    with_aiokafka,
    with_tidemark,
    with_tidemark_on_a_blocking_socket,
    with_the_cli,
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_knows_the_password_is_served(
    guarded: BrokerProcess, client: Callable[[str, str, str], None], mechanism: str
) -> None:
    client(guarded.bootstrap, mechanism, PASSWORD)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_does_not_is_refused(
    guarded: BrokerProcess, client: Callable[[str, str, str], None], mechanism: str
) -> None:
    with pytest.raises(REFUSALS):
        client(guarded.bootstrap, mechanism, "guess")


def test_a_client_that_proves_nothing_is_cut_off(guarded: BrokerProcess) -> None:
    host, _, port = guarded.bootstrap.rpartition(":")
    # Metadata version 0, for no topic: the smallest request that asks for something.
    metadata = b"\0\0\0\x0e" + b"\0\x03\0\0\0\0\0\x01\xff\xff" + b"\0\0\0\0"
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(metadata)
        assert client.recv(1) == b""


def test_our_client_that_proves_nothing_is_told_what_may_be_missing(
    guarded: BrokerProcess,
) -> None:
    hint = r"at the first request: does it ask for SASL \(security\.protocol\)\?"
    with pytest.raises(OSError, match=hint), open_client(guarded.bootstrap):
        pass


def test_librdkafka_is_told_the_users_and_that_there_are_no_acls(guarded: BrokerProcess) -> None:
    admin = librdkafka(guarded.bootstrap, "PLAIN", PASSWORD)
    described = admin.describe_user_scram_credentials([USER])
    assert isinstance(described, dict)
    (found,) = described.values()
    by_mechanism = {each.mechanism for each in found.result(10).scram_credential_infos}
    assert by_mechanism == {ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512}
    wanted = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    (made,) = admin.create_acls([wanted]).values()
    with pytest.raises(KafkaException, match="there are no ACLs here"):
        made.result(10)


def test_kafka_python_is_told_that_there_are_no_acls(guarded: BrokerProcess) -> None:
    settings = _python_settings(guarded.bootstrap, "PLAIN", PASSWORD)
    topics = ResourcePatternFilter(KafkaPythonResourceType.TOPIC, None, ACLResourcePatternType.ANY)
    of_anybody = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, topics)
    with (
        closing(KafkaAdminClient(**settings)) as client,
        pytest.raises(SecurityDisabledError, match="there are no ACLs here"),
    ):
        client.describe_acls(of_anybody)
