"""What a broker has before it has any topic: its settings, its loop and its clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.http import Readiness
from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Made by `server.open_broker`, for whatever stands on it."""

    settings: BrokerSettings
    tasks: trio.Nursery
    turn: Turn
    reactor: Reactor
    timers: Timers
    metrics: Metrics
    odd_events: OddEvents
    clock: Clock
    readiness: Readiness
    on_end: list[Callable[[], None]] = field(default_factory=list)
    """What is done when the reactor ends."""
