"""`tidemark export`: what is in a topic, as a file that data tools read."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidemark.cli.arguments import (
    START,
    Name,
    from_option,
    partitions_option,
    read_committed_option,
)
from tidemark.cli.output import notice, progress
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Isolation, Start

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")


class _Columns(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """Names of columns with commas between them."""

    name = "columns"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if name not in _COLUMNS:
                self.fail(f"no column {name!r}; there are {', '.join(_COLUMNS)}", param, ctx)
            if names.count(name) > 1:
                self.fail(f"the column {name!r} twice: a file has each once", param, ctx)
        return names


@click.command(short_help="Write a topic's records to a Parquet file.")
@click.argument("topic", type=Name())
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE.parquet",
    help="The file to write; it has this name once it is complete.",
)
@from_option
@click.option(
    "--until",
    "end",
    type=START,
    default="end",
    show_default=True,
    metavar="PLACE",
    help="Where to end, in each partition; what comes meanwhile is left out.",
)
@partitions_option
@click.option(
    "-c",
    "--columns",
    type=_Columns(),
    default=",".join(_COLUMNS),
    metavar="NAME,…",
    help=f"Of {', '.join(_COLUMNS)}; the rest is not decoded.",
)
@click.option("--text", is_flag=True, help="Keys and values as strings; they must be UTF-8.")
@read_committed_option
@click.option(
    "-z",
    "--compression",
    type=click.Choice(_COMPRESSIONS),
    default="zstd",
    show_default=True,
    help="Codec of the file.",
)
@talks_to_brokers
@click.pass_obj
def export(
    session: Session,
    topic: str,
    path: Path,
    start: Start,
    end: Start,
    partitions: Sequence[int],
    columns: tuple[str, ...],
    text: bool,
    read_committed: bool,
    compression: str,
) -> None:
    """Write the records of TOPIC to a Parquet file, in columns, one partition after another.

    Pandas, Polars, DuckDB and Spark read it. Needs Tidemark with its extra columns: pip install
    '.[columns]' in its checkout.
    """
    try:
        from tidemark.client.columns import read_topic
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from error
    if str(path) == "-":
        raise click.UsageError("the file is put in its place once it is whole: name one")
    if path.exists() and not path.is_file():
        # A rename would put the file in the place of a pipe, or of a device.
        raise click.UsageError(f"{path} is not a file to be replaced: name a new one")
    path = path.resolve()  # what a link stands for is replaced, and the link stays
    if not path.parent.is_dir():
        raise click.UsageError(f"there is no folder {path.parent} to write {path.name} into")
    isolation = Isolation.READ_COMMITTED if read_committed else Isolation.READ_UNCOMMITTED
    batches = read_topic(
        session.bootstrap,
        topic,
        start=start,
        end=end,
        partitions=partitions or None,
        columns=columns,
        isolation=isolation,
        settings=session.settings(),
    )
    count = _write(batches, path, compression, is_text=text)
    notice(f"{count} records of {topic} in {path}")


def _write(batches: "pa.RecordBatchReader", path: Path, compression: str, *, is_text: bool) -> int:
    """The file appears under its name whole, or not at all."""
    from pyarrow.parquet import ParquetWriter

    schema = _as_text(batches.schema) if is_text else batches.schema
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    try:
        with (
            progress(f"→ {path}", total=None) as advance,
            ParquetWriter(partial, schema, compression=compression) as writer,
        ):
            for batch in batches:
                writer.write_batch(_cast(batch, schema) if is_text else batch)
                advance(batch.nbytes)
                count += batch.num_rows
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return count


def _as_text(schema: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(field.name, pa.string()) if field.name in ("key", "value") else field
            for field in schema
        ]
    )


def _cast(batch: "pa.RecordBatch", schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    try:
        return batch.cast(schema)
    except pa.ArrowInvalid as error:
        raise click.ClickException(
            f"a key or a value is not UTF-8 ({error}); leave --text out to have the bytes"
        ) from error
