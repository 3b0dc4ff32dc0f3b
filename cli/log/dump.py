"""Print what is in segments: batches, or records."""

import sys
from collections.abc import Callable, Iterator
from os.path import basename, dirname, exists, isfile, realpath

import click

from tidemark.cli.formats.formatter import FormatError, Formatter, Source
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.rpk import compile_rpk
from tidemark.cli.log.batches import Table, print_json
from tidemark.partitions.storage.inspect import (
    Problem,
    StoredBatch,
    dump,
    partition_directories,
)
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import StorageError

_Write = Callable[[StoredBatch | Problem], None]


@click.command("dump")
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
    with what is wrong with it, and then the exit status is 1. A segment that the broker removes
    meanwhile is named, and what is there by then follows.
    """
    if isfile(path) and not path.endswith(LOG_SUFFIX):
        raise click.UsageError(f"{path} is no segment: those end in {LOG_SUFFIX}")
    if rpk is not None or records:
        damaged = _dump_records(path, _formatter(rpk))
    elif output == "json":
        damaged = _dump_batches(path, print_json)
    else:
        damaged = _dump_batches(path, Table())
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
        damaged += _is_damage(found)
        write(found)
    return damaged


def _dump_records(path: str, write: Formatter) -> int:
    """Print every record that can be read; returns how many places cannot."""
    out, damaged = sys.stdout.buffer, 0
    for found in _everything(path, with_records=True):
        if isinstance(found, Problem) or found.damage is not None:
            damaged += _is_damage(found)
            what = found.what if isinstance(found, Problem) else found.damage
            click.echo(f"{found.path} at {found.position}: {what}", err=True)
        elif not found.header.is_control:
            source = _source(found)
            out.write(b"".join(write(record, source) for record in found.records or ()))
    out.flush()
    return damaged


def _is_damage(found: StoredBatch | Problem) -> bool:
    return not found.is_harmless if isinstance(found, Problem) else found.damage is not None


def _everything(path: str, *, with_records: bool) -> Iterator[StoredBatch | Problem]:
    files = OsFiles()
    places = [path] if path.endswith(LOG_SUFFIX) else partition_directories(files, path)
    for place in places:
        try:
            yield from dump(files, place, with_records=with_records)
        except StorageError:
            if place == path or exists(place):
                raise
            click.echo(f"{place} was removed meanwhile", err=True)  # with its topic, perhaps


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
