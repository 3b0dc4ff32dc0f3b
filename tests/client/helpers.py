"""What many tests do: write some records, read everything back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from tidemark.client import Client, ConsumerRecord

T = TypeVar("T")


async def write(client: Client, topic: str, values: Sequence[bytes], *, partition: int = 0) -> None:
    """One record after the other, in this order."""
    async with client.producer() as producer:
        futures = [await producer.send(topic, value, partition=partition) for value in values]
    for future in futures:
        future.result()


async def read(client: Client, topic: str) -> list[ConsumerRecord]:
    async with client.consumer(topic, until_end=True) as consumer:
        return [record async for record in consumer]


async def read_values(client: Client, topic: str) -> list[bytes | None]:
    return [record.value for record in await read(client, topic)]


def numbered(*bounds: int) -> list[bytes]:
    return [b"%d" % index for index in range(*bounds)]


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """What `look` gives, as soon as it is something; a test fails that waits ten seconds for it."""
    for _ in range(1000):
        if found := await look():
            return found
        await trio.sleep(0.01)
    raise AssertionError("it did not happen")
