"""What clients do to the brokers meanwhile: sending, reading, and bytes that make no sense."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from random import Random
from typing import Final

import trio

from tidemark.client import Client, ConsumerRecord, Producer, open_client
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import History, Outcome, Poll, Polled, Send

TOPIC: Final = "words"
PARTITIONS: Final = 2
_LIFE_SECONDS_MAX: Final = 10.0
"""A client is cancelled then, wherever it is, and another one comes."""
_PAUSE_SECONDS_MAX: Final = 0.1
_AGAIN_SECONDS: Final = 0.1
_SIZES: Final = (10, 10, 1000, 100_000)
_ODD_LENGTHS: Final = (0, 8, 20, 100, 1 << 20, (1 << 31) - 1)


class Clients:
    """The clients of one run, and what they saw."""

    def __init__(self, bootstrap: str, note: Callable[[str], None]) -> None:
        self.history = History()
        self.is_over = False
        """Whether they are to come to an end."""
        self._bootstrap = bootstrap
        self._note = note
        self._numbers = count(1)

    async def make_topic(self) -> None:
        async def make(client: Client) -> None:
            await client.admin.create_topic(TOPIC, partitions=PARTITIONS)

        while not await self._as_client("maker", make):
            pass

    async def produce(self, rng: Random) -> None:
        """As a service that is restarted now and then."""
        while not self.is_over:
            name = f"producer {next(self._numbers)}"

            async def send(client: Client, name: str = name) -> None:
                async with client.producer(linger_ms=rng.choice((0, 5))) as producer:
                    while not self.is_over:
                        await self._send(producer, name, rng)
                        await trio.sleep(rng.random() * _PAUSE_SECONDS_MAX)

            with trio.move_on_after(rng.random() * _LIFE_SECONDS_MAX):
                await self._as_client(name, send)

    async def _send(self, producer: Producer, name: str, rng: Random) -> None:
        partition = TopicPartition(TOPIC, rng.randrange(PARTITIONS))
        value = str(next(self._numbers)).encode()
        padded = value.ljust(rng.choice(_SIZES), b".")
        started, outcome = trio.current_time(), Outcome.INFO
        offsets: tuple[Offset, ...] = ()
        try:
            delivery = await producer.send(TOPIC, padded, partition=partition.partition)
            outcome, offsets = Outcome.OK, (Offset((await delivery.wait()).offset),)
        finally:
            send = Send(
                client=name,
                partition=partition,
                values=(value,),
                started=started,
                ended=trio.current_time(),
                outcome=outcome,
                offsets=offsets,
            )
            self.history.sends.append(send)

    async def consume(self, rng: Random) -> None:
        """From the beginning, each time."""
        while not self.is_over:
            name = f"consumer {next(self._numbers)}"

            async def read(client: Client, name: str = name) -> None:
                async with client.consumer(TOPIC) as consumer:
                    async for record in consumer:
                        self._polled(name, record)
                        if self.is_over:
                            return

            with trio.move_on_after(rng.random() * _LIFE_SECONDS_MAX):
                await self._as_client(name, read)

    async def read_all(self) -> None:
        is_read = False
        while not is_read:
            name = f"reader {next(self._numbers)}"

            async def read(client: Client, name: str = name) -> None:
                async with client.consumer(TOPIC, until_end=True) as consumer:
                    async for record in consumer:
                        self._polled(name, record)

            is_read = await self._as_client(name, read)

    def _polled(self, name: str, record: ConsumerRecord) -> None:
        where = TopicPartition(record.topic, record.partition)
        value = (record.value or b"").rstrip(b".")
        seen = (Polled(where, Offset(record.offset), value),)
        now = trio.current_time()
        self.history.polls.append(Poll(client=name, started=now, ended=now, records=seen))

    async def babble(self, addresses: list[str], rng: Random) -> None:
        """What is no request, or the beginning of one, from somebody who leaves."""
        while not self.is_over:
            await trio.sleep(rng.random())
            host, _, port = rng.choice(addresses).rpartition(":")
            length = rng.choice(_ODD_LENGTHS)
            said = length.to_bytes(4, "big") + rng.randbytes(rng.randrange(100))
            with trio.move_on_after(rng.random()):
                try:
                    async with await trio.open_tcp_stream(host, int(port)) as stream:
                        await stream.send_all(said)
                        await stream.receive_some()
                except (OSError, trio.BrokenResourceError):
                    continue

    async def _as_client(self, name: str, work: Callable[[Client], Awaitable[None]]) -> bool:
        """Do it as a client; false if that has given up, which is noted, and after a while."""
        is_done = False
        try:
            async with open_client(self._bootstrap) as client:
                await work(client)
            is_done = True
        except* (TidemarkError, OSError) as errors:
            self._note(f"{name} gave up: {type(errors.exceptions[0]).__name__}")
            await trio.sleep(_AGAIN_SECONDS)
        return is_done
