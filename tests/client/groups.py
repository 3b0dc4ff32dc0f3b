"""Members of groups that are quick, and what they read."""

from typing import Any

import trio

from tests.client.helpers import until
from tidemark.client import ConsumerRecord
from tidemark.client.consumer import Consumer

QUICK: dict[str, Any] = {  # Any: keyword arguments of several types
    "heartbeat_seconds": 0.05,
    "session_timeout_seconds": 6.0,
}


async def wait_assigned(consumer: Consumer, count: int) -> None:
    async def look() -> bool:
        return len(consumer.assignment) == count

    await until(look)


async def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    with trio.fail_after(10):
        return [await anext(consumer) for _ in range(count)]
