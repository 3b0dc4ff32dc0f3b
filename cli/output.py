"""What commands print: the answer on standard output, in the form that was asked for, and
everything else on standard error, and that only where somebody is looking.

Nothing here folds a column, and nothing is coloured, unless it goes to a terminal.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import click

from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from rich.console import Console

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Command = TypeVar("Command", bound=Callable[..., None])


_GAP: Final = 2
_FOLDED_MIN: Final = 20
"""How many characters wide a column that is folded has to be."""


class Form(StrEnum):
    """How a list or a description is printed: the choices of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


output_option = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([form.value for form in Form]),
    callback=lambda _ctx, _param, value: Form(value),
    default=Form.TABLE.value,
    show_default=True,
    help="How to print the answer.",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: which key of a row it shows, and whether only `-o wide` does."""

    key: str
    heading: str | None = None
    wide: bool = False

    @property
    def title(self) -> str:
        return (self.heading or self.key.replace("_", "-")).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table of a description that has several."""

    title: str
    rows: Sequence[Mapping[str, Json]]
    columns: Sequence[Column]


def print_rows(rows: Sequence[Mapping[str, Json]], columns: Sequence[Column], form: Form) -> None:
    """Print a list. JSON and YAML carry every key of the rows, tables the columns."""
    match form:
        case Form.TABLE | Form.WIDE:
            _echo_table(rows, columns, form)
        case _:
            print_value(list(rows), form)


def print_sections(
    document: Mapping[str, Json], facts: Mapping[str, Json], sections: Sequence[Section], form: Form
) -> None:
    """Print a description: `facts` and tables for people, or the whole `document`."""
    if form not in (Form.TABLE, Form.WIDE):
        print_value(document, form)
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"{name.upper():<{width}}  {cell(value)}")
    for section in sections:
        if section.rows:
            click.echo(f"\n{section.title.upper()}")
            _echo_table(section.rows, section.columns, form)


def print_value(value: Json, form: Form) -> None:
    """Print any value as JSON or YAML."""
    # What cannot be encoded would be written as an escape that is none of theirs.
    is_utf8 = sys.stdout.encoding.lower() in ("utf-8", "utf8")
    if form is Form.YAML:
        import yaml

        # JSON has no kinds of strings, and writes an enumeration's as any other.
        plain = json.loads(json.dumps(value))
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=is_utf8), nl=False)
    else:
        click.echo(json.dumps(value, ensure_ascii=not is_utf8, indent=2))


def cell(value: Json) -> str:
    """A value as a table shows it.

    What came from the network may hold anything: characters that do not print (a terminal's
    escape sequences among them) are shown as escapes, never sent to the terminal.
    """
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return value if value.isprintable() else _escaped(value)
        case Mapping():
            return ", ".join(f"{key}={cell(item)}" for key, item in value.items()) or "-"
        case Sequence():
            return ",".join(map(cell, value)) or "-"
        case _:
            return str(value)


def _escaped(text: str) -> str:
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def render_table(
    rows: Sequence[Mapping[str, Json]], columns: Sequence[Column], console: "Console"
) -> str:
    """The table as text: no borders, numbers to the right, no spaces at line ends.

    Where it is wider than the console, the last column is folded if that leaves it some room.
    Otherwise the lines are longer than the console: a terminal breaks them where it ends, which
    can be read and copied, and a number that is broken within its column cannot.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    *others, last = (
        max(map(cell_len, (column.title, *(cell(row.get(column.key)) for row in rows))))
        for column in columns
    )
    room = console.width - sum(others) - _GAP * len(others)
    if last > room and room < _FOLDED_MIN:
        console.width = console.width - room + last
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="right" if _is_numeric(rows, column) else "left",
            overflow="fold",
            no_wrap=column is not columns[-1],
        )
    for row in rows:
        table.add_row(*(Text(cell(row.get(column.key))) for column in columns))
    with console.capture() as capture:
        console.print(table)
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())


def _is_numeric(rows: Sequence[Mapping[str, Json]], column: Column) -> bool:
    known = [value for row in rows if (value := row.get(column.key)) is not None]
    return bool(known) and all(type(value) is int for value in known)


def plain_table(rows: Sequence[Mapping[str, Json]], columns: Sequence[Column]) -> str:
    """The same as `render_table` gives where there is room for everything.

    For pipes, which have it: rich takes a tenth of a millisecond for each cell, and a cluster has
    thousands of partitions.
    """
    from rich.cells import cell_len

    table = []
    for column in columns:
        cells = [column.title, *(cell(row.get(column.key)) for row in rows)]
        widths = list(map(cell_len, cells))
        room = max(widths)
        pads = (" " * (room - width) for width in widths)
        if _is_numeric(rows, column):
            table.append([pad + text for pad, text in zip(pads, cells, strict=True)])
        else:
            table.append([text + pad for pad, text in zip(pads, cells, strict=True)])
    gap = " " * _GAP
    return "".join(gap.join(line).rstrip() + "\n" for line in zip(*table, strict=True))


def _echo_table(rows: Sequence[Mapping[str, Json]], columns: Sequence[Column], form: Form) -> None:
    shown = [column for column in columns if form is Form.WIDE or not column.wide]
    if not sys.stdout.isatty():
        # A pipe has no width: a table that is cut to 80 columns cannot be grepped.
        click.echo(plain_table(rows, shown), nl=False)
        return
    from rich.console import Console

    click.echo(render_table(rows, shown, Console(file=sys.stdout)), nl=False)


def notice(text: str) -> None:
    """Tell a person what was done. Scripts have the exit status."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


@contextmanager
def progress(what: str, *, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error while the block runs, if that is a terminal.

    Yields the function that moves it forward, by bytes; `total` None means that the end is not
    known.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TransferSpeedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda step: bar.advance(task, step)
