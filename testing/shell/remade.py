"""A topic that is deleted and made again, while brokers go and come back.

A broker that starts goes through deletions of long ago, and what has the topic's name by then is
another one. What was acknowledged to the topic of an id is there for as long as that one is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from random import Random
from typing import Final
from uuid import UUID

import trio

from tidemark.client import Client
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.testing.shell.clients import Clients

REMADE: Final = "remade"
_WORDS_MAX: Final = 5
_PAUSE_SECONDS_MAX: Final = 0.3


class Remade:
    """That topic in one run, and what was written to it."""

    def __init__(self, clients: Clients) -> None:
        self.stored = defaultdict[UUID, set[bytes]](set)
        """What was acknowledged, by the topic's id."""
        self._clients = clients
        self._numbers = count(1)

    async def remake(self, rng: Random) -> None:
        while not self._clients.is_over:
            await self._clients.live("remaker", rng, partial(self._remake, rng))

    async def _remake(self, rng: Random, client: Client, _: str) -> None:
        with _expected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            await client.admin.delete_topic(REMADE)
        await client.admin.create_topic(REMADE, partitions=1)
        made, stored = await _id_of(client), set[bytes]()
        async with client.producer() as producer:
            for _word in range(rng.randint(1, _WORDS_MAX)):
                word = str(next(self._numbers)).encode()
                delivery = await producer.send(REMADE, word, partition=0)
                await delivery.wait()
                stored.add(word)
                await trio.sleep(rng.random() * _PAUSE_SECONDS_MAX)
        # A deletion that somebody has given up may have come only now: whose they are is not known.
        if made == await _id_of(client):
            self.stored[made] |= stored

    async def missing(self) -> list[str]:
        """What is wrong with the topic that there is in the end."""
        found = list[str]()

        async def look(client: Client, _: str) -> None:
            with _expected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                made, read = await _id_of(client), set[bytes | None]()
                async with client.consumer(REMADE, until_end=True) as consumer:
                    async for record in consumer:
                        read.add(record.value)
                lost = self.stored[made] - read
                if lost and made == await _id_of(client):
                    found.append(f"{sorted(lost)} are not in the topic that was made anew")

        while not await self._clients.as_client("onlooker", look):
            pass
        return found


async def _id_of(client: Client) -> UUID:
    return (await client.admin.describe_topic(REMADE)).topic_id


@contextmanager
def _expected(code: ErrorCode) -> Iterator[None]:
    try:
        yield
    except RequestError as error:
        if error.code is not code:
            raise
