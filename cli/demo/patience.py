"""Waiting for a cluster to do something, and for how long."""

from collections.abc import Callable
from typing import Final

import trio

from tidemark.protocol.errors import TidemarkError

PATIENCE_SECONDS: Final = 20.0
"""How long the cluster may take for anything that it should do in a second or two."""
_TICK_SECONDS: Final = 0.01


class DemoFailed(TidemarkError):
    """The cluster did not do in time what it should; the complaint says what."""

    def __init__(self, complaint: str) -> None:
        super().__init__(
            f"{complaint} after {PATIENCE_SECONDS:.0f} s; the brokers' logs are kept by --data-dir"
        )


async def poll_until(condition: Callable[[], bool]) -> None:
    """Until the condition holds; the caller bounds it."""
    # Conditions are about what several tasks write down; an event for each would say less.
    while not condition():  # noqa: ASYNC110
        await trio.sleep(_TICK_SECONDS)


async def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    """Until the condition holds; `DemoFailed` if that takes longer than the patience."""
    with trio.move_on_after(PATIENCE_SECONDS):
        await poll_until(condition)
        return
    raise DemoFailed(complaint)
