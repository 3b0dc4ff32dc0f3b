"""`tidemark produce`: standard input or a file into a topic, a record a line."""

import os
import stat
from functools import partial
from typing import BinaryIO, Final

import click

from tidemark.cli.arguments import Name
from tidemark.cli.client_options import request_bytes_max
from tidemark.cli.formats.escapes import unescape_kcat
from tidemark.cli.formats.json_lines import InputError, parse_json
from tidemark.cli.formats.lines import LineFormat, parse_header
from tidemark.cli.numbers import Whole
from tidemark.cli.output import notice, progress
from tidemark.cli.sending import Acks, Plan, send_input
from tidemark.cli.session import Session, talks_to_brokers

_ACKS: Final[dict[str, Acks]] = {"all": "all", "-1": "all", "1": 1, "0": 0}


@click.command(short_help="Write records to a topic.")
@click.argument("topic", type=Name(), metavar="TOPIC")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("-k", "--key", help="The key of every record that has none in its line.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="What ends the key in each line.")
@click.option("-D", "--delimiter", default=r"\n", show_default=True, help="What ends a record.")
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of every record; NAME alone is null; repeatable.",
)
@click.option(
    "-p",
    "--partition",
    type=Whole(0),
    help="To this partition; chosen by the key if not given.",
)
@click.option("-Z", "--empty-is-null", is_flag=True, help="Empty values and keys are sent as null.")
@click.option(
    "--json", "as_json", is_flag=True, help="Each line is JSON, as `consume --json` prints it."
)
@click.option(
    "-a",
    "--acks",
    type=click.Choice(list(_ACKS)),
    default="all",
    show_default=True,
    help="How many replicas must have a record: all in sync, the leader, none.",
)
@click.option(
    "-z",
    "--compression",
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    help="Codec of the batches.",
)
@talks_to_brokers
@click.pass_obj
def produce(
    session: Session,
    topic: str,
    file: BinaryIO,
    key: str | None,
    key_delimiter: str | None,
    delimiter: str,
    headers: tuple[str, ...],
    partition: int | None,
    empty_is_null: bool,
    as_json: bool,
    acks: str,
    compression: str,
) -> None:
    """Write records to TOPIC: the lines of FILE, or of standard input.

    A line is a record's value, to the byte. -K finds a key before it; --json takes everything from
    the line: {"key", "value", "headers", "partition", "timestamp"}, all optional.

    TEXT may hold \\n, \\t, \\r and \\xNN. A record of more than a megabyte needs -X
    max.request.size=BYTES, and a topic whose max.message.bytes takes it.
    """
    lines = LineFormat(
        key=None if key is None else _argument_bytes(key),
        key_delimiter=None if key_delimiter is None else _delimiter(key_delimiter),
        headers=tuple(map(_header, headers)),
        partition=partition,
        empty_is_null=empty_is_null,
    )
    if as_json and lines != LineFormat():
        raise click.UsageError("with --json the key, headers and partition come from the lines")
    plan = partial(
        Plan,
        topic=topic,
        file=file,
        delimiter=_delimiter(delimiter),
        parse=parse_json if as_json else lines.parse,
        partition=partition,
        acks=_ACKS[acks],
        compression=compression,
        request_bytes_max=request_bytes_max(session.options),
    )
    if file.isatty():
        # A bar would be drawn over what is being typed.
        notice(f"each line is a record of {topic}; Ctrl-D ends")
        count = session.run(partial(send_input, plan=plan()))
    else:
        with progress(f"→ {topic}", total=_size(file)) as advance:
            count = session.run(partial(send_input, plan=plan(advance=advance)))
    notice(f"{count} records to {topic}")


def _header(text: str) -> tuple[str, bytes | None]:
    try:
        return parse_header(text)
    except InputError as error:
        raise click.UsageError(str(error)) from None


def _argument_bytes(text: str) -> bytes:
    """An argument's own bytes, even where they are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _delimiter(text: str) -> bytes:
    delimiter = unescape_kcat(text)
    if not delimiter:
        raise click.UsageError("a delimiter cannot be empty")
    return delimiter


def _size(file: BinaryIO) -> int | None:
    """How many bytes there are to read, where that can be known."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
