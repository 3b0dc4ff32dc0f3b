"""A table that is as wide as the terminal at most, and whose headings are whole.

Where there is no room for all columns, those that say least are left out, one after the other, and
names are cut: a heading or a number of which a part is missing says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_GAP: Final = 2
_NAME_MIN: Final = 16
"""Cells of a name that make out which it is."""


class Column(NamedTuple):
    """One column of a table."""

    heading: str
    is_right: bool = False
    is_name: bool = False
    """Names may be long, and are cut before a column is left out."""
    spare: int = 0
    """The column with the largest is left out first, one with 0 never."""


def fitting_table(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> Table:
    """The table, of the columns that `width` has room for; `rows` have cells for all of them."""
    from rich.table import Table

    kept = _kept(columns, rows, width)
    others = sum(_width(columns, rows, at) + _GAP for at in kept if not columns[at].is_name)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for at in kept:
        column = columns[at]
        table.add_column(
            column.heading,
            justify="right" if column.is_right else "left",
            no_wrap=True,
            max_width=max(len(column.heading), width - others) if column.is_name else None,
        )
    for row in rows:
        table.add_row(*(row[at] for at in kept))
    return table


def _kept(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[int]:
    kept = list(range(len(columns)))
    while sum(_least(columns, rows, at) + _GAP for at in kept) - _GAP > width:
        spare = max(kept, key=lambda at: columns[at].spare)
        if not columns[spare].spare:
            break
        kept.remove(spare)
    return kept


def _least(columns: Sequence[Column], rows: Sequence[Sequence[Text]], at: int) -> int:
    """How narrow the column can be."""
    full = _width(columns, rows, at)
    return min(full, _NAME_MIN) if columns[at].is_name else full


def _width(columns: Sequence[Column], rows: Sequence[Sequence[Text]], at: int) -> int:
    return max(len(columns[at].heading), *(row[at].cell_len for row in rows), 0)
