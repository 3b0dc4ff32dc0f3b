"""aiokafka's clients, on a loop that runs while something is waited for.

It ships no types: what it takes and hands out is `Any`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from tests.clients.guests import REFUSALS, SECONDS_MAX, Library, Login, Receive, Refused, Send
from tests.clients.guests.with_kafka_python import settings_of

T = TypeVar("T")


class _Loop:
    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def run(self, waiting: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(asyncio.wait_for(waiting, SECONDS_MAX))
        except KafkaError as error:
            if error.errno in REFUSALS:
                raise Refused(REFUSALS[REFUSALS.index(error.errno)]) from error
            raise


@contextmanager
def _open_loop() -> Iterator[_Loop]:
    with asyncio.Runner() as runner:
        yield _Loop(runner)


async def _make(kind: type[Any], *topics: str, **settings: object) -> Any:
    """It wants to be made where a loop runs."""
    return kind(*topics, **settings)


@contextmanager
def writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    with _open_loop() as loop:
        own = {**settings_of(login), "enable_idempotence": is_idempotent}
        producer = loop.run(_make(AIOKafkaProducer, **own))
        try:
            loop.run(producer.start())
            yield lambda value: loop.run(producer.send_and_wait(topic, value))
        finally:
            loop.run(producer.stop())


@contextmanager
def reading(login: Login, topic: str, group: str) -> Iterator[Receive]:
    own = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with _open_loop() as loop:
        consumer = loop.run(_make(AIOKafkaConsumer, topic, **settings_of(login), **own))

        async def next_one() -> bytes:
            record = await consumer.getone()
            await consumer.commit()
            value: bytes = record.value
            return value

        try:
            loop.run(consumer.start())
            yield lambda: loop.run(next_one())
        finally:
            loop.run(consumer.stop())


@contextmanager
def transacting(login: Login, topic: str, transactional_id: str) -> Iterator[Send]:
    with _open_loop() as loop:
        own = {**settings_of(login), "transactional_id": transactional_id}
        producer = loop.run(_make(AIOKafkaProducer, **own))

        async def send(value: bytes) -> None:
            async with producer.transaction():
                await producer.send_and_wait(topic, value)

        try:
            loop.run(producer.start())
            yield lambda value: loop.run(send(value))
        finally:
            loop.run(producer.stop())


LIBRARY = Library(writing=writing, reading=reading, transacting=transacting)
