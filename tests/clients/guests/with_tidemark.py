"""Our own library's clients, from a thread of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients.guests import PASSWORD, REFUSALS, Library, Login, Receive, Refused, Send
from tidemark.client import ClientSettings, RequestError, Sasl
from tidemark.client.blocking import BlockingClient, open_client


@contextmanager
def connected(login: Login) -> Iterator[BlockingClient]:
    settings = ClientSettings(sasl=Sasl("SCRAM-SHA-256", login.user, PASSWORD))
    with open_client(login.bootstrap, settings=settings) as client:
        yield client


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except RequestError as error:
        if error.code in REFUSALS:
            raise Refused(error.code) from error
        raise


@contextmanager
def writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    with connected(login) as client, client.producer(idempotent=is_idempotent) as producer:

        def send(value: bytes) -> None:
            with translated():
                producer.send(topic, value).wait()

        yield send


@contextmanager
def reading(login: Login, topic: str, group: str) -> Iterator[Receive]:
    with (
        translated(),
        connected(login) as client,
        client.consumer(topic, group=group, auto_commit_seconds=None) as consumer,
    ):
        records = iter(consumer)

        def receive() -> bytes:
            with translated():
                record = next(records)
                consumer.commit()
                assert record.value is not None
                return record.value

        yield receive


@contextmanager
def transacting(login: Login, topic: str, transactional_id: str) -> Iterator[Send]:
    with (
        translated(),
        connected(login) as client,
        client.producer(transactional_id=transactional_id) as producer,
    ):

        def send(value: bytes) -> None:
            with translated(), producer.transaction():
                producer.send(topic, value).wait()

        yield send


LIBRARY = Library(writing=writing, reading=reading, transacting=transacting)
