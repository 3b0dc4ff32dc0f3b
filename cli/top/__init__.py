"""`tidemark top`: the cluster as it works, drawn anew every few seconds."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Final

import click
import trio

from tidemark.cli.numbers import Real, Whole
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.top.figures import Figures
from tidemark.cli.top.screen import WIDE, Screen
from tidemark.cli.top.sight import Sight, look
from tidemark.client import Client, RequestError

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE_SECONDS: Final = 10.0
"""How long a look may take before it is said that nobody answers."""


@click.command()
@click.option(
    "--every",
    "seconds",
    type=Real(0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option(
    "-n",
    "--count",
    "frames",
    type=Whole(1),
    metavar="N",
    help="Stop after this many frames.  [default: when interrupted]",
)
@talks_to_brokers
@click.pass_obj
def top(session: Session, seconds: float, frames: int | None) -> None:
    """Watch brokers, the busiest topics and lagging groups, live.

    Rates are those since the last look. CAUGHT-UP-IN is when a group will have read everything at
    its present speed; "never" if it falls behind or stands still. LAG of a broker is how far its
    slowest replica is behind. A narrow terminal is shown fewer columns.

    Where the output is not a terminal, each frame is printed in full, below the one before.
    """
    session.run(partial(_watch, seconds=seconds, frames=frames))


async def _watch(client: Client, *, seconds: float, frames: int | None) -> None:
    from rich.console import Console

    if sys.stdout.isatty():
        await _draw(client, Console(), seconds, frames)
        return
    console, screen = Console(file=sys.stdout, width=WIDE), Screen()
    async for figures in _looks(client, seconds, frames):
        with console.capture() as capture:
            console.print(screen.frame(figures))
        # Not printed by the console, which calls a reader that went away a failure.
        click.echo("".join(line.rstrip() + "\n" for line in capture.get().splitlines()))


async def _draw(client: Client, console: Console, seconds: float, frames: int | None) -> None:
    from rich.live import Live

    screen = Screen()
    with Live(console=console, auto_refresh=False, screen=frames is None) as live:
        async for figures in _looks(client, seconds, frames):
            width, height = console.size
            live.update(screen.frame(figures, width=width, height=height), refresh=True)


async def _looks(client: Client, seconds: float, frames: int | None) -> AsyncIterator[Figures]:
    """What there is to show, as often as asked for. While nobody answers, what was there last.

    Raises `OSError` if nobody answers at first.
    """
    before: Sight | None = None
    now, trouble = await look(client), None
    for number in islice(count(1), frames):
        yield Figures(before, now, trouble=trouble)
        if number == frames:
            return
        await trio.sleep(seconds)
        try:
            with trio.fail_after(_PATIENCE_SECONDS):
                before, now, trouble = now, await look(client), None
        except trio.TooSlowError:
            trouble = f"nobody answers for {_PATIENCE_SECONDS:g} s"
        except (OSError, RequestError) as error:
            trouble = str(error)
