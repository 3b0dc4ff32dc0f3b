"""How the demo is shown: lines with the time for all, and live tables where there is a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click
import trio

from tidemark.cli.demo.ledger import Ledger
from tidemark.cli.demo.story import Story
from tidemark.cli.demo.watch import Watch
from tidemark.cli.output import cell
from tidemark.testing.process_cluster import ProcessCluster

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_FRAME_SECONDS: Final = 0.125
_COUNTS_SECONDS: Final = 2.0
_STYLES: Final = {"up": "green", "killed": "bold red", "starting": "yellow"}


class Teller:
    """Prints lines, each with the seconds since the demo began, above the tables if there are."""

    def __init__(self, began: float) -> None:
        self.live: Live | None = None
        self._began = began

    def say(self, text: str) -> None:
        line = f"{trio.current_time() - self._began:6.2f} s  {text}"
        if self.live is None:
            click.echo(line)
        else:
            self.live.console.print(line, highlight=False, markup=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that there is to look at."""

    cluster: ProcessCluster
    story: Story
    watch: Watch
    ledger: Ledger
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=9))
    """The newest frames, each with its time and what was acknowledged by then."""

    def counts(self) -> str:
        ledger = self.ledger
        pause = ledger.longest_pause(trio.current_time())
        return (
            f"{ledger.sent:,} sent, {ledger.acknowledged:,} acknowledged, {ledger.read:,} read "
            f"back, longest pause {pause:.2f} s"
        )

    def acknowledged_per_second(self) -> float:
        """Over the last second or so."""
        self.recent.append((trio.current_time(), self.ledger.acknowledged))
        (start, before), (end, after) = self.recent[0], self.recent[-1]
        return (after - before) / (end - start) if end > start else 0.0


@asynccontextmanager
async def shown(scene: Scene, teller: Teller, *, plain: bool) -> AsyncIterator[None]:
    """Show the scene for as long as the block."""
    show = _tell_until_cancelled if plain else _draw_until_cancelled
    async with trio.open_nursery() as nursery:
        nursery.start_soon(show, scene, teller)
        yield
        nursery.cancel_scope.cancel()


async def _tell_until_cancelled(scene: Scene, teller: Teller) -> None:
    while True:
        await trio.sleep(_COUNTS_SECONDS)
        teller.say(scene.counts())


async def _draw_until_cancelled(scene: Scene, teller: Teller) -> None:
    from rich.live import Live

    # No thread of its own: it would draw what a task is in the middle of changing.
    with Live(auto_refresh=False) as live:
        teller.live = live
        try:
            while True:
                live.update(_picture(scene), refresh=True)
                await trio.sleep(_FRAME_SECONDS)
        finally:
            teller.live = None


def _picture(scene: Scene) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    rate = scene.acknowledged_per_second()
    counts = Text(f"{scene.counts()}, {rate:,.0f} records/s now")
    return Group("", _brokers(scene), "", _partitions(scene), "", counts)


def _brokers(scene: Scene) -> Table:
    from rich.text import Text

    table = _table("BROKER", "ADDRESS", "STATE", "LEADS", "LAG")
    sight = scene.watch.sight
    for node_id, broker in scene.cluster.brokers.items():
        state = scene.story.states[node_id]
        lags = [lag for lag in sight.lags(node_id) if lag is not None]
        table.add_row(
            str(node_id),
            broker.bootstrap,
            Text(state, style=_STYLES[state]),
            cell([each.partition for each in sight.led_by(node_id)]),
            cell(max(lags, default=None)),
        )
    return table


def _partitions(scene: Scene) -> Table:
    table = _table("PARTITION", "LEADER", "EPOCH", "IN-SYNC", "HIGH-WATERMARK", "LONGEST-PAUSE")
    now = trio.current_time()
    for each in scene.watch.sight.partitions:
        quorum = scene.watch.sight.quorums.get(each.partition)
        table.add_row(
            str(each.partition),
            cell(each.leader),
            str(each.leader_epoch),
            cell(each.in_sync),
            cell(None if quorum is None else quorum.high_watermark),
            f"{scene.ledger.pulses[each.partition].longest_pause(now):.2f} s",
        )
    return table


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading)
    return table
