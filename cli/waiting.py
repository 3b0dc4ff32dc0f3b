"""Waiting for what a cluster does by itself: its options, and a table of how far it is."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from tidemark.cli.numbers import Real
from tidemark.cli.output import Column, Json, render_table

wait_option = click.option(
    "--wait", is_flag=True, help="Wait until it is done; on a terminal, show the progress."
)
timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    type=Real(0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait at most.",
)


@contextmanager
def live_table(
    columns: Sequence[Column],
) -> Iterator[Callable[[Sequence[Mapping[str, Json]]], None]]:
    """A table on standard error that changes with each call, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:

        def show(rows: Sequence[Mapping[str, Json]]) -> None:
            live.update(Text(render_table(rows, columns, Console()).rstrip()), refresh=True)

        yield show
