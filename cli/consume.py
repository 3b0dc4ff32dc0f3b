"""`tidemark consume`: print what is in a topic, and what comes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import click
import trio

from tidemark.cli.arguments import (
    START,
    Name,
    from_option,
    partitions_option,
    read_committed_option,
)
from tidemark.cli.formats.formatter import FormatError, Formatter, Source
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.kcat import compile_kcat
from tidemark.cli.formats.rpk import compile_rpk
from tidemark.cli.leaderless import tell_of_leaderless
from tidemark.cli.lookup import extents, partitions_of, resolve
from tidemark.cli.numbers import Whole
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.streams import write_out
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

PLAIN = r"%v\n"


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


@click.command(short_help="Print a topic's records.")
@click.argument("topics", nargs=-1, required=True, type=Name(), metavar="TOPIC…")
@from_option
@click.option(
    "--until",
    "end",
    type=START,
    metavar="PLACE",
    help="Stop before this place in each partition, or where it ends now.",
)
@partitions_option
@click.option(
    "-g",
    "--group",
    type=Name(),
    metavar="GROUP",
    help="Read as a member of this group, and commit.",
)
@click.option(
    "-n", "--max", "records_max", type=Whole(0, bits=64), help="Stop after this many records."
)
@click.option(
    "-e", "--exit", "until_end", is_flag=True, help="Stop at the end of what is there now."
)
@read_committed_option
@click.option(
    "--read-level",
    type=click.Choice([level.value for level in ReadLevel]),
    help="How fresh it must be: committed (from leaders), strict (they prove that they lead), "
    "two-step (proven, but read from replicas), replica (from replicas, however far they are).  "
    "[default: replica with --rack, else committed]",
)
@click.option("--rack", help="Where this is: read from replicas and observers in that rack.")
@click.option("--json", "as_json", is_flag=True, help="Print each record as a line of JSON.")
@click.option(
    "-f",
    "--format",
    "rpk",
    metavar="FORMAT",
    help=r"Print by rpk's percent tokens, as in '%k=%v\n', or json.",
)
@click.option("--kcat-format", "kcat", metavar="FORMAT", help="Print by kcat's percent tokens.")
@click.option(
    "-t",
    "--template",
    metavar="TEMPLATE",
    help="Print by a jinja2 template, or by @FILE; nothing is put behind it.",
)
@talks_to_brokers
@click.pass_obj
def consume(
    session: Session,
    topics: tuple[str, ...],
    start: Start,
    end: Start | None,
    partitions: tuple[int, ...],
    group: str | None,
    records_max: int | None,
    until_end: bool,
    read_committed: bool,
    read_level: str | None,
    rack: str | None,
    as_json: bool,
    rpk: str | None,
    kcat: str | None,
    template: str | None,
) -> None:
    """Print the records of TOPIC, and go on with those that come, until Ctrl-C.

    A record is its value and a newline, to the byte, unless a format says otherwise. A time is
    @MILLISECONDS since 1970, @-1h30m (so long ago), or ISO 8601 as in 2026-11-21T10:30:00Z.

    With --until, the command ends there, or where a partition ended when it began.

    With a group, reading goes on where the group is; --from holds where it has not been yet.

    Whatever the read level, only what is committed is printed. With strict and two-step, --exit
    stops at all that was committed when the command began, and where no majority can say what that
    is, the command fails and says so.
    """
    if end is not None and group is not None:
        raise click.UsageError("--until is not for groups: what comes later would never be read")
    plan = Plan(
        what=[TopicPartition(topic, p) for topic in topics for p in partitions] or list(topics),
        start=start,
        end=end,
        group=group,
        records_max=records_max,
        until_end=until_end or end is not None,
        isolation=Isolation.READ_COMMITTED if read_committed else Isolation.READ_UNCOMMITTED,
        read_level=None if read_level is None else ReadLevel(read_level),
        format=_choose_format(as_json=as_json, rpk=rpk, kcat=kcat, template=template),
    )
    if records_max != 0:
        session.run(partial(_consume, plan=plan), rack=rack)


def _choose_format(
    *, as_json: bool, rpk: str | None, kcat: str | None, template: str | None
) -> Formatter:
    if sum((as_json, rpk is not None, kcat is not None, template is not None)) > 1:
        raise click.UsageError("--json, --format, --kcat-format and --template exclude each other")
    if as_json:
        return format_json
    try:
        if kcat is not None:
            return compile_kcat(kcat)
        if template is not None:
            return _compile_template(template)
        return compile_rpk(PLAIN if rpk is None else rpk)
    except FormatError as error:
        raise click.UsageError(str(error)) from None


def _compile_template(argument: str) -> Formatter:
    # jinja2 is imported by those who use it.
    from tidemark.cli.formats.template import compile_template

    if not argument.startswith("@"):
        return compile_template(argument)
    try:
        text = Path(argument[1:]).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise click.UsageError(f"--template {argument}: {error.strerror}") from None
    return compile_template(text)


async def _consume(client: Client, plan: Plan) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell_of_leaderless, client, plan.what)
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
