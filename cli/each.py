"""The same done to several things: one that fails does not keep the others from it.

In a script, who hears only of a failure does not know what was done before it and behind it. So
where something has failed, what was done is said there, too.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import click

from tidemark.cli.failures import FAILURE, one_line
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError

T = TypeVar("T")


async def do_each(
    items: Sequence[T], do: Callable[[T], Awaitable[str]], *, name: Callable[[T], str] = str
) -> None:
    """Do it to all of them, in their order. `do` returns what it has done, in words.

    Each failure is a line on standard error; at the end they are the exit status. A cluster that
    did not answer would keep the next one waiting as long, so that ends it, and the others are said
    not to have been tried.
    """
    report = _Report()
    for tried, item in enumerate(items, 1):
        try:
            what = await do(item)
        except (TidemarkError, OSError) as error:
            report.failed(error)
            if _is_of_the_cluster(error):
                report.left_out([name(each) for each in items[tried:]])
                break
        else:
            report.did(what)
    report.end()


def _is_of_the_cluster(error: TidemarkError | OSError) -> bool:
    """Whether it is no answer, but came when there had been none for as long as is waited."""
    if isinstance(error, RequestError):
        # Of a name that was given, "unknown" is an answer.
        return error.retriable and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return isinstance(error, OSError)


class _Report:
    """Says on standard error what became of each as soon as it is to be said."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []
        self._untold: list[str] = []

    def did(self, what: str) -> None:
        self._untold.append(what)
        if self._errors or sys.stderr.isatty():
            self._tell()

    def failed(self, error: Exception) -> None:
        self._errors.append(error)
        self._tell()
        click.echo(f"tidemark: {one_line(error)}", err=True)

    def left_out(self, names: Sequence[str]) -> None:
        if names:
            click.echo(f"tidemark: not tried: {', '.join(names)}", err=True)

    def end(self) -> None:
        if self._errors:
            raise click.exceptions.Exit(FAILURE) from ExceptionGroup("failures", self._errors)

    def _tell(self) -> None:
        for what in self._untold:
            click.echo(what, err=True)
        self._untold.clear()
