"""librdkafka's clients, by confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

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


def settings_of(login: Login) -> dict[str, Any]:  # Any: whatever the library takes
    return {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": login.user,
        "sasl.password": PASSWORD,
        "log_level": 0,
    }


def code_of(error: KafkaException) -> int:
    code: int = error.args[0].code()
    return code


def check(error: KafkaError | None) -> None:
    if error is None:
        return
    for code in REFUSALS:
        # What ends a client for good has another code, and the words of its cause.
        is_fatal = error.code() == KafkaError._FATAL
        if error.code() == code or (is_fatal and KafkaError(code).str() in error.str()):
            raise Refused(code)
    raise KafkaException(error)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        check(error.args[0])
        raise


def send(producer: Producer, topic: str, value: bytes) -> None:
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        errors.append(error)

    producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(SECONDS_MAX) == 0
    check(errors[0])


@contextmanager
def writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    producer = Producer({**settings_of(login), "enable.idempotence": is_idempotent})
    yield lambda value: send(producer, topic, value)


@contextmanager
def reading(login: Login, topic: str, group: str, **settings: object) -> Iterator[Receive]:
    own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    with closing(Consumer({**settings_of(login), **own, **settings})) as consumer:
        consumer.subscribe([topic])

        def receive() -> bytes:
            deadline = time.monotonic() + SECONDS_MAX
            while time.monotonic() < deadline:
                with translated():
                    message = consumer.poll(0.2)
                if message is not None:
                    check(message.error())
                    with translated():
                        consumer.commit(message=message, asynchronous=False)
                    value = message.value()
                    assert value is not None
                    return value
            raise TimeoutError

        yield receive


@contextmanager
def transacting(login: Login, topic: str, transactional_id: str) -> Iterator[Send]:
    producer = Producer({**settings_of(login), "transactional.id": transactional_id})
    with translated():
        producer.init_transactions(SECONDS_MAX)

    def commit(value: bytes) -> None:
        producer.begin_transaction()
        # What it says of the value is that the transaction failed; why, it says at the commit.
        producer.produce(topic, value)
        with translated():
            producer.commit_transaction(SECONDS_MAX)

    yield commit


LIBRARY = Library(writing=writing, reading=reading, transacting=transacting)
