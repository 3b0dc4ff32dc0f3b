"""kafka-python's clients. It ships no types: what it takes and hands out is `Any`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from tests.clients.guests import (
    PASSWORD,
    REFUSALS,
    SECONDS_MAX,
    Library,
    Login,
    Receive,
    Refused,
    Send,
)


def settings_of(login: Login) -> dict[str, Any]:
    return {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": login.user,
        "sasl_plain_password": PASSWORD,
    }


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.errno in REFUSALS:
            raise Refused(REFUSALS[REFUSALS.index(error.errno)]) from error
        raise


@contextmanager
def writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    own = {"enable_idempotence": is_idempotent, "max_block_ms": SECONDS_MAX * 1000}
    with closing(KafkaProducer(**settings_of(login), **own)) as producer:

        def send(value: bytes) -> None:
            with translated():
                producer.send(topic, value).get(SECONDS_MAX)

        yield send


@contextmanager
def reading(login: Login, topic: str, group: str) -> Iterator[Receive]:
    own = {
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_poll_records": 1,
    }
    with closing(KafkaConsumer(topic, **settings_of(login), **own)) as consumer:
        is_settled = False

        def receive() -> bytes:
            nonlocal is_settled
            # In one go: a poll that ends while it joins the group leaves it without partitions.
            with translated():
                for (record,) in consumer.poll(SECONDS_MAX * 1000).values():
                    consumer.commit()
                    if not is_settled:
                        # Who has joined asks for the metadata once more, up to 100 ms later. Where
                        # that is what says first that a topic is refused, it is only logged, and
                        # no fetch is sent any more that would raise it. After this none is due.
                        consumer.topics()
                        is_settled = True
                    value: bytes = record.value
                    return value
            raise TimeoutError

        yield receive


@contextmanager
def transacting(login: Login, topic: str, transactional_id: str) -> Iterator[Send]:
    own = {"transactional_id": transactional_id, "max_block_ms": SECONDS_MAX * 1000}
    with closing(KafkaProducer(**settings_of(login), **own)) as producer:
        with translated():
            producer.init_transactions()

        def send(value: bytes) -> None:
            producer.begin_transaction()
            with translated():
                producer.send(topic, value).get(SECONDS_MAX)
                producer.commit_transaction()

        yield send


LIBRARY = Library(writing=writing, reading=reading, transacting=transacting)
