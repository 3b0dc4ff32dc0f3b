"""`tidemark consume`: print what is in a topic, and what comes."""

from functools import partial
from pathlib import Path

import click

from tidemark.cli.arguments import (
    START,
    Name,
    from_option,
    partitions_option,
    read_committed_option,
)
from tidemark.cli.formats.formatter import FormatError, Formatter
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.kcat import compile_kcat
from tidemark.cli.formats.rpk import compile_rpk
from tidemark.cli.numbers import Whole
from tidemark.cli.reading import Plan, print_records
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Isolation, ReadLevel, Start, TopicPartition

PLAIN = r"%v\n"


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
        session.run(partial(print_records, plan=plan), rack=rack)


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
