"""Clients over TLS, with a password: what each writes it reads, byte for byte."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.client import ClientSettings, Sasl, Tls
from tidemark.client.blocking import open_client
from tidemark.testing import open_blocking_cluster

CA: Final = str(CERTIFICATES / "ca.pem")
USER, PASSWORD = "ada", "an ünusual password"
SETTINGS: Final = {
    "listeners": "SASL_SSL://localhost:0",
    "users": f"{USER}:{PASSWORD}",
    "num.partitions": "1",
    "ssl.certificate.location": str(CERTIFICATES / "localhost.pem"),
}
VALUES: Final = [b"%d " % number + b"x" * 20_000 for number in range(150)]
"""More than a socket's buffers hold, and than a record of TLS."""


@pytest.fixture(scope="module")
def encrypted() -> Iterator[str]:
    """Where a broker listens that speaks TLS alone."""
    with open_blocking_cluster(settings=SETTINGS) as cluster:
        yield f"localhost:{cluster.bootstrap.rpartition(':')[2]}"


def _librdkafka(bootstrap: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": CA,
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }


def with_librdkafka(bootstrap: str, topic: str) -> list[bytes | None]:
    producer = Producer(_librdkafka(bootstrap))
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    settings = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**_librdkafka(bootstrap), **settings})
    with closing(consumer):
        consumer.subscribe([topic])
        found: list[bytes | None] = []
        while len(found) < len(VALUES):
            message = consumer.poll(20)
            assert message is not None, "nothing more came"
            assert message.error() is None
            found.append(message.value())
        return found


# kafka-python and aiokafka ship no types: what they take and hand out is `Any`.
def _python(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=CA),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }


def with_kafka_python(bootstrap: str, topic: str) -> list[bytes | None]:
    with closing(KafkaProducer(**_python(bootstrap))) as producer:
        for value in VALUES:
            producer.send(topic, value)
        producer.flush(20)
    reading = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 10_000}
    found: list[bytes | None] = []
    with closing(KafkaConsumer(topic, **_python(bootstrap), **reading)) as consumer:
        for record in consumer:
            found.append(record.value)
            if len(found) == len(VALUES):
                break
    return found


def with_aiokafka(bootstrap: str, topic: str) -> list[bytes | None]:
    async def go() -> list[bytes | None]:
        async with AIOKafkaProducer(**_python(bootstrap)) as producer:
            for value in VALUES:
                await producer.send(topic, value)
        settings = {**_python(bootstrap), "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(topic, **settings) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(go(), 30))


def with_tidemark(bootstrap: str, topic: str) -> list[bytes | None]:
    sasl = Sasl("SCRAM-SHA-512", USER, PASSWORD)
    settings = ClientSettings(tls=Tls(ca_file=CA), sasl=sasl)
    with open_client(bootstrap, settings=settings) as client:
        with client.producer() as producer:
            for value in VALUES:
                producer.send(topic, value)
        with client.consumer(topic, until_end=True) as consumer:
            return [record.value for record in consumer]


def with_the_cli(bootstrap: str, topic: str) -> list[bytes | None]:
    command = [sys.executable, "-m", "tidemark.cli.entry"]
    for name, value in _librdkafka(bootstrap).items():
        command += ["-X", f"{name}={value}"]
    lines = b"".join(value + b"\n" for value in VALUES)
    subprocess.run([*command, "produce", topic], input=lines, check=True, timeout=60)
    consume = [*command, "consume", topic, "--from", "beginning", "--exit"]
    return list(
        subprocess.run(consume, capture_output=True, check=True, timeout=60).stdout.split(b"\n")[
            :-1
        ]
    )


def with_kcat(bootstrap: str, topic: str) -> list[bytes | None]:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    command = ["kcat", "-t", topic, "-q", "-X", "broker.address.family=v4"]
    # Its librdkafka's SCRAM is refused: librdkafka#4895, mended in 2.6.1.
    for name, value in {**_librdkafka(bootstrap), "sasl.mechanism": "PLAIN"}.items():
        command += ["-X", f"{name}={value}"]
    lines = b"".join(value + b"\n" for value in VALUES)
    subprocess.run([*command, "-P"], input=lines, check=True, timeout=60)
    read = subprocess.run([*command, "-C", "-e"], capture_output=True, check=True, timeout=60)
    return list(read.stdout.split(b"\n")[:-1])


@pytest.mark.parametrize(
    "client",
    [with_librdkafka, with_kafka_python, with_aiokafka, with_tidemark, with_the_cli, with_kcat],
)
def test_what_a_client_writes_it_reads(
    encrypted: str, client: Callable[[str, str], list[bytes | None]]
) -> None:
    assert client(encrypted, client.__name__) == VALUES
