"""The types of the command line's own arguments."""

import os
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import click

from tidemark.cli.numbers import Whole
from tidemark.cli.places import Shift, parse_start, parse_target
from tidemark.client.offsets import Start

T = TypeVar("T")


class PlaceType(click.ParamType, Generic[T]):  # type: ignore[type-arg]  # not generic in click 8.2
    """A place in a log. Times that are relative count from when the command line is read."""

    name = "place"

    def __init__(self, parse: Callable[..., T]) -> None:
        self._parse = parse

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> T:
        try:
            return self._parse(value, now_ms=time.time_ns() // 1_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Name(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """What a topic or a group is called: text, and not none at all."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("it is empty: is a variable of the script not set?", param, ctx)
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(f"{os.fsencode(value)!r} is not UTF-8, which names have to be", param, ctx)
        return value


START: Final[PlaceType[Start]] = PlaceType(parse_start)
TARGET: Final[PlaceType[Start | Shift]] = PlaceType(parse_target)

from_option = click.option(
    "--from",
    "start",
    type=START,
    default="beginning",
    show_default=True,
    metavar="PLACE",
    help="Where to begin: beginning, end, an offset, -N (the last N), a time.",
)
partitions_option = click.option(
    "-p",
    "--partition",
    "partitions",
    type=Whole(0),
    multiple=True,
    help="Only this one; repeatable.",
)
read_committed_option = click.option(
    "--read-committed", is_flag=True, help="Leave out transactions that are open or were aborted."
)
