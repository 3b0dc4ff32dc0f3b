"""Check every byte of logs."""

import os
from os.path import basename, exists, islink, realpath

import click

from tidemark.cli.log.batches import problem_row
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    output_option,
    print_rows,
    print_value,
    progress,
)
from tidemark.partitions.storage.directory import partition_of
from tidemark.partitions.storage.inspect import partition_directories
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.verify import Verification, verify
from tidemark.protocol.errors import StorageError


@click.command("verify")
@click.argument("path", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@output_option
def verify_(path: str, form: Form) -> None:
    """Check every byte of a partition's log, or of all logs of a data directory.

    The exit status is 1 if any record is not as it was written, or the directory of a partition is
    a symbolic link to what is not there. A wrong index is reported, but does no harm: the broker
    makes it anew.
    """
    files = OsFiles()
    directories = partition_directories(files, path)
    total = sum(_log_bytes(files, directory) for directory in directories)
    found = []
    with progress("verifying", total=total) as advance:
        for directory in directories:
            try:
                found.append(verify(files, directory, progress=advance))
            except (StorageError, FileNotFoundError):
                if directory == path or exists(directory):
                    raise
                # With its topic, perhaps.
                click.echo(f"{directory} was removed meanwhile", err=True)
    _print_verifications(found, form)
    damaged = [verification.directory for verification in found if not verification.is_sound]
    unreachable = _links_to_nothing(path)
    for said in unreachable.values():
        click.echo(said, err=True)
    if damaged or unreachable:
        raise StorageError(f"not sound: {', '.join((*damaged, *unreachable))}")


def _links_to_nothing(path: str) -> dict[str, str]:
    """Partitions whose directories are links to what is not there, each with a sentence."""
    with os.scandir(path) as entries:
        found = sorted(entry.path for entry in entries if partition_of(entry.name))
    return {
        link: f"{link} was not checked: it is a symbolic link to {realpath(link)}, which is not "
        "there. A disk is not mounted, perhaps"
        for link in found
        # In this order: of what a broker removes meanwhile, neither is so.
        if not exists(link) and islink(link)
    }


def _log_bytes(files: OsFiles, directory: str) -> int:
    try:
        sizes = files.sizes(directory)
    except FileNotFoundError:
        return 0
    return sum(size for name, size in sizes.items() if name.endswith(LOG_SUFFIX))


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
            "problems": [problem_row(problem) for problem in each.problems],
        }
        for each in found
    ]
    if form in (Form.JSON, Form.YAML):
        print_value(rows, form)
        return
    if not rows:
        return  # All were removed meanwhile.
    hidden = {"problems"}
    if not any(each.older_bytes for each in found):
        hidden.add("older_bytes")
    shown = [Column(key) for key in rows[0] if key not in hidden]
    print_rows(rows, shown, form)
    problems = [problem_row(problem) for each in found for problem in each.problems]
    if problems:
        click.echo("\nPROBLEMS")
        print_rows(problems, [Column(key) for key in problems[0]], form)
