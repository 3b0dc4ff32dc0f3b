"""Sends the records of an input to a topic, as they come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

import trio

from tidemark.cli.failures import advising
from tidemark.cli.formats.json_lines import InputError, NewRecord
from tidemark.cli.formats.lines import LineSplitter
from tidemark.cli.leaderless import tell_of_leaderless
from tidemark.cli.refused import tell_of_refused
from tidemark.cli.streams import read_piece
from tidemark.client import Client, Compression, DeliveryFuture, Producer, TopicPartition
from tidemark.protocol.errors import ErrorCode

RECORD_BYTES_MAX: Final = 128 * 1024 * 1024
# How many pieces of input may be on their way to the broker while the next one is read.
PIECES_MAX: Final = 8
_WHAT_IS_TAKEN: Final = (
    "-X max.request.size=BYTES sends larger requests, and the topic's max.message.bytes says "
    "what is taken"
)

Acks = Literal["all", 0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to produce, and how."""

    topic: str
    file: BinaryIO
    delimiter: bytes
    parse: Callable[[bytes], NewRecord]
    partition: int | None
    """Where all records go, if to one."""
    acks: Acks
    compression: str
    request_bytes_max: int
    advance: Callable[[int], None] = lambda _: None


async def send_input(client: Client, plan: Plan) -> int:
    """Send everything; returns how many records are known to be stored."""
    what = [plan.topic] if plan.partition is None else [TopicPartition(plan.topic, plan.partition)]
    with advising(ErrorCode.MESSAGE_TOO_LARGE, _WHAT_IS_TAKEN):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_of_leaderless, client, what)
            count = await _write(client, plan)
            nursery.cancel_scope.cancel()
    return count


async def _write(client: Client, plan: Plan) -> int:
    """One task reads and sends, another waits for the deliveries in the same order: so a failure
    ends the command when it happens, even while the input says nothing."""
    async with (
        client.producer(
            acks=plan.acks,
            compression=Compression[plan.compression.upper()],
            linger_ms=5,
            request_bytes_max=plan.request_bytes_max,
        ) as producer,
        trio.open_nursery() as telling,
    ):
        telling.start_soon(tell_of_refused, producer)
        async with trio.open_nursery() as nursery:
            send, receive = trio.open_memory_channel[list[DeliveryFuture]](PIECES_MAX)
            nursery.start_soon(_wait_delivered, receive)
            async with send:
                count = await _send_all(producer, plan, send)
        telling.cancel_scope.cancel()
    return count


async def _send_all(
    producer: Producer,
    plan: Plan,
    deliveries: trio.MemorySendChannel[list[DeliveryFuture]],
) -> int:
    splitter = LineSplitter(plan.delimiter, line_bytes_max=RECORD_BYTES_MAX)
    count = 0

    async def send(lines: list[bytes]) -> None:
        nonlocal count
        futures = []
        try:
            for line in lines:
                record = plan.parse(line)
                futures.append(await _send(producer, plan.topic, record))
                count += 1
        finally:
            # Also when a line is bad: what was sent before it shall be known to have arrived.
            await deliveries.send(futures)

    try:
        while piece := await read_piece(plan.file):
            await send(splitter.feed(piece))
            plan.advance(len(piece))
        await send(splitter.finish())
    except InputError as error:
        await producer.flush()
        raise InputError(f"record {count + 1} of the input: {error}") from None
    return count


async def _send(producer: Producer, topic: str, record: NewRecord) -> DeliveryFuture:
    return await producer.send(
        topic,
        record.value,
        record.key,
        headers=record.headers,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )


async def _wait_delivered(
    deliveries: trio.MemoryReceiveChannel[list[DeliveryFuture]],
) -> None:
    async with deliveries:
        async for futures in deliveries:
            for future in futures:
                await future.wait()
