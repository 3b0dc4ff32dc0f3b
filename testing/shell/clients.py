"""What clients do to the brokers meanwhile: sending, reading, and bytes that make no sense."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from random import Random
from typing import Final, TypeAlias

import trio

from tidemark.client import Client, ConsumerRecord, Producer, open_client
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import History, Outcome, Poll, Polled, Send

WORDS: Final = "words"
COPIES: Final = "copies"
"""What the words come to, written in transactions."""
PARTITIONS: Final = 2
_LIFE_SECONDS_MAX: Final = 10.0
_PAUSE_SECONDS_MAX: Final = 0.1
_AGAIN_SECONDS: Final = 0.1
_SIZES: Final = (10, 10, 1000, 100_000)
_ODD_LENGTHS: Final = (0, 8, 20, 100, 1 << 20, (1 << 31) - 1)

Work: TypeAlias = Callable[[Client, str], Awaitable[None]]
"""What a client does, and under which name, that nobody else has."""


class Clients:
    """The clients of one run, and what they saw."""

    isolation: Mapping[str, str] = {WORDS: "read_uncommitted", COPIES: "read_committed"}
    """How each topic is read."""

    def __init__(self, bootstrap: str, note: Callable[[str], None]) -> None:
        self.history = History()
        self.is_over = False
        """Whether they are to come to an end."""
        self._bootstrap = bootstrap
        self._note = note
        self._numbers = count(1)

    async def make_topics(self) -> None:
        async def make(client: Client, _: str) -> None:
            for topic in self.isolation:
                try:
                    await client.admin.create_topic(topic, partitions=PARTITIONS)
                except RequestError as error:
                    if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise

        while not await self.as_client("maker", make):
            pass

    async def produce(self, rng: Random) -> None:
        """As a service that is restarted now and then."""

        async def send(client: Client, name: str) -> None:
            async with client.producer(linger_ms=rng.choice((0, 5))) as producer:
                while not self.is_over:
                    await self._send(producer, name, rng)
                    await trio.sleep(rng.random() * _PAUSE_SECONDS_MAX)

        while not self.is_over:
            await self.live("producer", rng, send)

    async def _send(self, producer: Producer, name: str, rng: Random) -> None:
        partition = TopicPartition(WORDS, rng.randrange(PARTITIONS))
        value = str(next(self._numbers)).encode()
        padded = value.ljust(rng.choice(_SIZES), b".")
        started, outcome = trio.current_time(), Outcome.INFO
        offsets: tuple[Offset, ...] = ()
        try:
            delivery = await producer.send(WORDS, padded, partition=partition.partition)
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

    async def consume(self, topic: str, rng: Random) -> None:
        """From the beginning, each time."""
        while not self.is_over:
            await self.live("consumer", rng, partial(self._read, topic))

    async def _read(
        self, topic: str, client: Client, name: str, *, until_end: bool = False
    ) -> None:
        isolation = self.isolation[topic]
        async with client.consumer(topic, isolation=isolation, until_end=until_end) as consumer:
            async for record in consumer:
                self._polled(name, record)
                if self.is_over and not until_end:
                    return

    async def read_all(self) -> History:
        """Each topic, to its end; what was read there and then."""
        before = len(self.history.polls)
        for topic in self.isolation:
            read = partial(self._read, topic, until_end=True)
            while not await self.as_client("reader", read):
                pass
        return History(polls=self.history.polls[before:])

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

    async def live(self, kind: str, rng: Random, work: Work) -> None:
        """One client's life: it is cancelled, wherever it is by then."""
        with trio.move_on_after(rng.random() * _LIFE_SECONDS_MAX):
            await self.as_client(kind, work)

    async def as_client(self, kind: str, work: Work) -> bool:
        """Do it as a client; false if that has given up, which is noted, and after a while."""
        name, is_done = f"{kind} {next(self._numbers)}", False
        try:
            async with open_client(self._bootstrap) as client:
                await work(client, name)
            is_done = True
        except* (TidemarkError, OSError) as errors:
            self._note(f"{name} gave up: {type(errors.exceptions[0]).__name__}")
            await trio.sleep(_AGAIN_SECONDS)
        return is_done
