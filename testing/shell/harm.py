"""What is done to the brokers of a run, and to their cables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import trio

from tidemark.testing.shell.hosted import ShellBroker

_KINDS: Final = ("tear", "tear", "clog", "hang", "kill", "stop", "pause", "power", "dark")
_SECONDS_MAX: Final = 2.0
_HANG_SECONDS_MAX: Final = 4.0
"""Longer than a member may be silent."""


async def harm(
    brokers: Sequence[ShellBroker],
    nursery: trio.Nursery,
    rng: Random,
    note: Callable[[str], None],
    *,
    seconds: float,
) -> Counter[str]:
    """One thing after the other, each healed before the next; how often there was which."""
    done, until = Counter[str](), trio.current_time() + seconds
    while trio.current_time() < until:
        await trio.sleep(rng.expovariate(1.0))
        broker, kind = rng.choice(brokers), rng.choice(_KINDS)
        note(f"fault {kind} {broker.node}")
        done[kind] += 1
        harmed = list(brokers) if kind == "dark" else [broker]
        if kind in ("power", "dark"):
            await _lose_power(harmed, nursery, rng)
        else:
            await _do(kind, broker, nursery, rng)
    note("healed")
    return done


async def _do(kind: str, broker: ShellBroker, nursery: trio.Nursery, rng: Random) -> None:
    cable = rng.choice((broker.clients, broker.peers))
    seconds = rng.random() * _SECONDS_MAX
    match kind:
        case "tear":
            cable.tear(rng.random())
        case "clog":
            cable.clog()
            await trio.sleep(seconds)
            cable.flow()
        case "hang":
            await cable.hang(rng.random() * _HANG_SECONDS_MAX)
        case "pause":
            broker.pause()
            await trio.sleep(seconds)
            broker.resume()
        case "kill":
            await broker.kill()
            await trio.sleep(seconds)
            await nursery.start(broker.run, None)
        case _:
            await broker.stop()
            await trio.sleep(seconds)
            await nursery.start(broker.run, None)


async def _lose_power(brokers: Sequence[ShellBroker], nursery: trio.Nursery, rng: Random) -> None:
    """All in the same moment; they come back one after the other."""
    async with trio.open_nursery() as losing:
        for broker in brokers:
            losing.start_soon(broker.lose_power)
    for broker in rng.sample(brokers, len(brokers)):
        await trio.sleep(rng.random() * _SECONDS_MAX / len(brokers))
        await nursery.start(broker.run, None)
