"""Reads records and prints them, until the end that was asked for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import click
import trio

from tidemark.cli.formats.formatter import Formatter, Source
from tidemark.cli.leaderless import tell_of_leaderless
from tidemark.cli.lookup import extents, partitions_of, resolve
from tidemark.cli.streams import wait_reader_gone, write_out
from tidemark.client import (
    AtOffset,
    Client,
    Consumer,
    FetchedBatches,
    Isolation,
    ReadLevel,
    Start,
    TopicPartition,
)
from tidemark.client.reading import visible_batches
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import Record, decode_batch
from tidemark.protocol.types import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to read, from where, and how to print it."""

    what: list[str] | list[TopicPartition]
    start: Start
    end: Start | None
    """Where to end in each partition, before whatever is there."""
    group: str | None
    records_max: int | None
    until_end: bool
    isolation: Isolation
    read_level: ReadLevel | None
    format: Formatter


async def print_records(client: Client, plan: Plan) -> None:
    """Until the plan says to stop; partitions that nobody leads are told of meanwhile."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell_of_leaderless, client, plan.what)
        if not plan.until_end:  # else it ends soon, with all that there was to write
            nursery.start_soon(wait_reader_gone)
        await _read(client, plan)
        nursery.cancel_scope.cancel()


async def _read(client: Client, plan: Plan) -> None:
    ends = None if plan.end is None else await _ends(client, plan.what, plan.end)
    left = set() if ends is None else {at for at, end in ends.items() if end > 0}
    if ends and not left:
        return
    async with client.consumer(
        plan.what,
        group=plan.group,
        start=plan.start,
        until_end=plan.until_end,
        isolation=plan.isolation,
        read_level=plan.read_level,
    ) as consumer:
        more = plan.records_max
        while (fetched := await consumer.fetch_batches()) is not None:
            at = fetched.topic_partition
            end = fetched.next_offset if ends is None else min(fetched.next_offset, ends[at])
            printed = await _print(_records(fetched, plan.isolation, end), plan.format, more)
            if more is not None and printed is not None:
                more -= printed.count
                if more <= 0:
                    await _stop_behind(consumer, at, printed.last, plan.group)
                    return
            if ends is not None and fetched.next_offset >= ends[at]:
                left.discard(at)
                if not left:
                    return
        if isinstance(plan.start, AtOffset):
            await _say_where_it_ends(consumer)


async def _ends(
    client: Client, what: list[str] | list[TopicPartition], place: Start
) -> dict[TopicPartition, Offset]:
    """Where to stop in each partition, before whatever is there now."""
    topics = sorted({each if isinstance(each, str) else each.topic for each in what})
    there = [
        at
        for topic in await client.admin.describe_topics(topics)
        for at in partitions_of(topic)
        if at in what or topic.name in what
    ]
    return await resolve(client.admin, place, await extents(client.admin, there))


async def _stop_behind(
    consumer: Consumer, partition: TopicPartition, last: Offset, group: str | None
) -> None:
    """Leave the group behind the last record printed, not behind the last one fetched."""
    if group is not None:
        await consumer.seek(partition, last + 1)
        await consumer.commit()


async def _say_where_it_ends(consumer: Consumer) -> None:
    """Of partitions that do not reach to where reading was to begin: an empty output is no answer,
    for there may be nothing behind it or a mistake before it."""
    for partition, end in sorted((await consumer.end_offsets()).items()):
        position = consumer.position(partition)
        if position > end:
            click.echo(f"tidemark: {partition} ends at offset {end}, before {position}", err=True)


@dataclass(frozen=True, slots=True)
class _Printed:
    """How many records were printed, and the offset of the last."""

    count: int
    last: Offset


async def _print(
    records: Iterable[tuple[Source, Record]], write: Formatter, records_max: int | None
) -> _Printed | None:
    """Print records, `records_max` at most; None if there are none.

    When one cannot be written, those before it are printed first.
    """
    lines: list[bytes] = []
    last: Offset | None = None
    try:
        for source, record in islice(records, records_max):
            lines.append(write(record, source))
            last = record.offset
    finally:
        await write_out(b"".join(lines))
    return None if last is None else _Printed(len(lines), last)


def _records(
    fetched: FetchedBatches, isolation: Isolation, end: Offset
) -> Iterator[tuple[Source, Record]]:
    """The records from the offset that was asked for to `end`, each with what it shares with
    others.

    The first batch may begin before that offset.
    """
    for at, header in visible_batches(fetched.data, fetched.aborted, isolation):
        if header.next_offset <= fetched.fetch_offset:
            continue
        source = _source(fetched, header)
        for record in decode_batch(fetched.data, header, at):
            if fetched.fetch_offset <= record.offset < end:
                yield source, record


def _source(fetched: FetchedBatches, header: BatchHeader) -> Source:
    return Source(
        topic=fetched.topic_partition.topic,
        partition=fetched.topic_partition.partition,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        compression=header.compression,
        timestamp_type=int(header.is_log_append_time),
        is_transactional=header.is_transactional,
        log_start=fetched.log_start,
        last_stable_offset=fetched.last_stable_offset,
        high_watermark=fetched.high_watermark,
    )
