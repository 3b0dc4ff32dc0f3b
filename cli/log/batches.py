"""Batches, and what is wrong in a file, as lines of a table and as JSON."""

import json

import click

from tidemark.cli.output import Json
from tidemark.partitions.storage.inspect import Problem, StoredBatch
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.gaps import is_gap

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


def problem_row(problem: Problem) -> dict[str, Json]:
    return {
        "path": problem.path,
        "position": problem.position,
        "what": problem.what,
        "harmless": problem.is_harmless,
    }


def print_json(found: StoredBatch | Problem) -> None:
    line = _batch(found) if isinstance(found, StoredBatch) else problem_row(found)
    click.echo(json.dumps(line, separators=(",", ":")))


class Table:
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
