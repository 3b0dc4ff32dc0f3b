"""A producer and a consumer that work steadily, and write down what they did."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from tidemark.cli.demo.ledger import Ledger, value_of
from tidemark.cli.demo.patience import PATIENCE_SECONDS, poll_until
from tidemark.client import (
    Client,
    DeliveryFuture,
    Producer,
    RequestError,
    TopicPartition,
)

_TICK_SECONDS: Final = 0.01
_UNSETTLED_MAX: Final = 100_000
_Sent = tuple[int, DeliveryFuture]


class Load:
    """Sends `rate` records a second, each to the next partition, until it is told to stop."""

    def __init__(self, topic: str, ledger: Ledger, *, rate: float) -> None:
        self._topic = topic
        self.ledger = ledger
        self._rate = rate
        self._is_stopping = False

    def stop(self) -> None:
        """Send nothing more; what was sent is still waited for."""
        self._is_stopping = True

    async def produce(self, client: Client) -> None:
        """Send until stopped; returns when all that was sent is acknowledged or given up."""
        async with (
            client.producer(acks="all") as producer,
            trio.open_nursery() as nursery,
        ):
            unsettled: list[trio.MemorySendChannel[_Sent]] = []
            for partition in self.ledger.pulses:
                sent, waiting = trio.open_memory_channel[_Sent](_UNSETTLED_MAX)
                nursery.start_soon(self._settle, partition, waiting)
                unsettled.append(sent)
            await self._send(producer, unsettled)
            for channel in unsettled:
                channel.close()

    async def _send(
        self, producer: Producer, unsettled: Sequence[trio.MemorySendChannel[_Sent]]
    ) -> None:
        start = trio.current_time()
        partitions = list(self.ledger.pulses)
        while not self._is_stopping:
            due = int((trio.current_time() - start) * self._rate)
            while self.ledger.sent < due:
                number = self.ledger.send()
                index = number % len(partitions)
                value = value_of(number)
                future = await producer.send(self._topic, value, partition=partitions[index])
                await unsettled[index].send((number, future))
            await trio.sleep(_TICK_SECONDS)

    async def _settle(self, partition: int, sent: trio.MemoryReceiveChannel[_Sent]) -> None:
        """Hear what becomes of each record; in one partition that is known in their order."""
        async with sent:
            async for number, future in sent:
                # One that is given up is not acknowledged; the books say no more of it.
                with suppress(RequestError):
                    stored = await future.wait()
                    now = trio.current_time()
                    self.ledger.acknowledge(number, partition, stored.offset, now)

    async def consume_until_cancelled(self, client: Client) -> None:
        """Read all partitions from their beginnings."""
        partitions = [TopicPartition(self._topic, each) for each in self.ledger.pulses]
        async with client.consumer(partitions) as consumer:
            while True:
                for record in await consumer.fetch():
                    self.ledger.take(record.value, record.partition, record.offset)


@asynccontextmanager
async def running(load: Load, client: Client) -> AsyncIterator[None]:
    """Produce and consume for as long as the block, and to the end of what was sent in it.

    That end is waited for as long as the patience lasts; what is missing then is missing.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(load.consume_until_cancelled, client)
        async with trio.open_nursery() as producing:
            producing.start_soon(load.produce, client)
            yield
            load.stop()
            producing.cancel_scope.deadline = trio.current_time() + PATIENCE_SECONDS
        with trio.move_on_after(PATIENCE_SECONDS):
            await poll_until(lambda: load.ledger.is_all_read)
        nursery.cancel_scope.cancel()
