"""`tidemark log`: look into a partition's files, without a broker and without changing anything."""

import json
import sys
from collections.abc import Callable, Iterator
from os.path import basename, dirname, isfile, realpath

import click

from tidemark.cli.formats.formatter import FormatError, Formatter, Source
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.rpk import compile_rpk
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    output_option,
    print_rows,
    print_value,
    progress,
)
from tidemark.cli.verbs import Verbs
from tidemark.partitions.storage.files import OsFiles
from tidemark.partitions.storage.inspect import (
    Problem,
    StoredBatch,
    Verification,
    dump,
    partition_directories,
    verify,
)
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.gaps import is_gap

_Write = Callable[[StoredBatch | Problem], None]

_LINE = "{:>14} {:>14} {:>8} {:>10} {:>6} {:<7} {:>14} {:>9} {}"
_HEADINGS = (
    "POSITION",
    "OFFSET",
    "RECORDS",
    "BYTES",
    "EPOCH",
    "CODEC",
    "TIMESTAMP",
    "PRODUCER",
    "",
)


@click.group(cls=Verbs)
def log() -> None:
    """Look into a partition's files, without a broker."""


@log.command("dump")
@click.argument("path", metavar="DIR|FILE", type=click.Path(exists=True))
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table, or a line of JSON a batch.",
)
@click.option(
    "-r", "--records", is_flag=True, help="Print records, as `consume --json` does, not batches."
)
@click.option("-f", "--format", "rpk", metavar="FORMAT", help="Print records by percent tokens.")
def dump_(path: str, output: str, records: bool, rpk: str | None) -> None:
    """Print what is in a segment, or in all segments of a partition.

    DIR is a partition's directory, or a data directory. A batch that is not sound is still shown,
    with what is wrong with it, and then the exit status is 1.
    """
    if isfile(path) and not path.endswith(LOG_SUFFIX):
        raise click.UsageError(f"{path} is no segment: those end in {LOG_SUFFIX}")
    if rpk is not None or records:
        damaged = _dump_records(path, _formatter(rpk))
    elif output == "json":
        damaged = _dump_batches(path, _print_json)
    else:
        damaged = _dump_batches(path, _Table())
    if damaged:
        places = "1 place is" if damaged == 1 else f"{damaged} places are"
        raise StorageError(f"{path}: {places} not sound")


def _formatter(rpk: str | None) -> Formatter:
    if rpk is None:
        return format_json
    try:
        return compile_rpk(rpk)
    except FormatError as error:
        raise click.UsageError(str(error)) from None


def _dump_batches(path: str, write: _Write) -> int:
    """Print every batch; returns how many places are not sound."""
    damaged = 0
    for found in _everything(path, with_records=False):
        damaged += isinstance(found, Problem) or found.damage is not None
        write(found)
    return damaged


def _dump_records(path: str, write: Formatter) -> int:
    """Print every record that can be read; returns how many places cannot."""
    out, damaged = sys.stdout.buffer, 0
    for found in _everything(path, with_records=True):
        if isinstance(found, Problem) or found.damage is not None:
            damaged += 1
            what = found.what if isinstance(found, Problem) else found.damage
            click.echo(f"{found.path} at {found.position}: {what}", err=True)
        elif not found.header.is_control:
            source = _source(found)
            out.write(b"".join(write(record, source) for record in found.records or ()))
    out.flush()
    return damaged


def _everything(path: str, *, with_records: bool) -> Iterator[StoredBatch | Problem]:
    files = OsFiles()
    places = [path] if path.endswith(LOG_SUFFIX) else partition_directories(files, path)
    for place in places:
        yield from dump(files, place, with_records=with_records)


def _source(batch: StoredBatch) -> Source:
    """What the batch's records share. The partition is named by the file's directory."""
    topic, _, partition = basename(dirname(realpath(batch.path))).rpartition("-")
    header = batch.header
    return Source(
        topic=topic,
        partition=int(partition) if partition.isascii() and partition.isdigit() else -1,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        compression=header.compression,
        timestamp_type=int(header.is_log_append_time),
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )


def _batch(batch: StoredBatch) -> dict[str, Json]:
    header = batch.header
    return {
        "path": batch.path,
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.size_bytes,
        "leader_epoch": header.partition_leader_epoch,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "compression": header.compression.name.lower(),
        "log_append_time": header.is_log_append_time,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "marker": None if batch.marker is None else _marker(batch.marker),
        "damage": batch.damage,
    }


def _marker(marker: Marker) -> dict[str, Json]:
    return {
        "outcome": "commit" if marker.is_commit else "abort",
        "coordinator_epoch": marker.coordinator_epoch,
    }


def _told(marker: Marker) -> str:
    return f"{'commit' if marker.is_commit else 'abort'}, coordinator {marker.coordinator_epoch}"


def _problem(problem: Problem) -> dict[str, Json]:
    return {
        "path": problem.path,
        "position": problem.position,
        "what": problem.what,
        "harmless": problem.is_harmless,
    }


def _print_json(found: StoredBatch | Problem) -> None:
    line = _batch(found) if isinstance(found, StoredBatch) else _problem(found)
    click.echo(json.dumps(line, separators=(",", ":")))


class _Table:
    """Prints batches as they come, under the name of their file: a log is too long to measure
    its columns first."""

    def __init__(self) -> None:
        self._path = ""

    def __call__(self, found: StoredBatch | Problem) -> None:
        if found.path != self._path:
            click.echo(f"{chr(10) if self._path else ''}{found.path}")
            click.echo(_LINE.format(*_HEADINGS).rstrip())
            self._path = found.path
        if isinstance(found, Problem):
            click.echo(f"{found.position:>14} {found.what}")
            return
        header = found.header
        marks = [
            *(["transactional"] if header.is_transactional and not header.is_control else []),
            *(["control"] if header.is_control and found.marker is None else []),
            *(["gap"] if is_gap(header) else []),
            *([_told(found.marker)] if found.marker is not None else []),
            *([f"DAMAGED: {found.damage}"] if found.damage is not None else []),
        ]
        line = _LINE.format(
            found.position,
            header.base_offset,
            header.record_count,
            header.size_bytes,
            header.partition_leader_epoch,
            header.compression.name.lower(),
            header.max_timestamp,
            header.producer_id,
            ", ".join(marks),
        )
        click.echo(line.rstrip())


@log.command("verify")
@click.argument("path", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@output_option
def verify_(path: str, form: Form) -> None:
    """Check every byte of a partition's log, or of all logs of a data directory.

    The exit status is 1 if any record is not as it was written. A wrong index is reported, but does
    no harm: the broker makes it anew.
    """
    files = OsFiles()
    directories = partition_directories(files, path)
    total = sum(
        size
        for directory in directories
        for name, size in files.sizes(directory).items()
        if name.endswith(LOG_SUFFIX)
    )
    with progress("verifying", total=total) as advance:
        found = [verify(files, directory, progress=advance) for directory in directories]
    _print_verifications(found, form)
    damaged = [verification.directory for verification in found if not verification.is_sound]
    if damaged:
        raise StorageError(f"not sound: {', '.join(damaged)}")


def _print_verifications(found: list[Verification], form: Form) -> None:
    rows: list[dict[str, Json]] = [
        {
            "partition": basename(realpath(each.directory)),
            "sound": each.is_sound,
            "segments": each.segments,
            "batches": each.batches,
            "records": each.records,
            "bytes": each.size_bytes,
            "older_bytes": each.older_bytes,
            "start": each.start_offset,
            "end": each.end_offset,
            "problems": [_problem(problem) for problem in each.problems],
        }
        for each in found
    ]
    if form in (Form.JSON, Form.YAML):
        print_value(rows, form)
        return
    hidden = {"problems"}
    if not any(each.older_bytes for each in found):
        hidden.add("older_bytes")
    shown = [Column(key) for key in rows[0] if key not in hidden]
    print_rows(rows, shown, form)
    problems = [_problem(problem) for each in found for problem in each.problems]
    if problems:
        click.echo("\nPROBLEMS")
        print_rows(problems, [Column(key) for key in problems[0]], form)
