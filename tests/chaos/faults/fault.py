"""What a fault is, and what most of them need."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Final, TypeAlias

from tests.chaos.brokers import ChaosBroker, ChaosCluster

Fault: TypeAlias = Callable[[ChaosCluster, Random], AbstractContextManager[str]]
"""Yields what exactly it did, for the report."""

WRONG: Final = "WRONG: "
"""What a fault says begins so if the broker did not do what it had to."""


def any_broker(cluster: ChaosCluster, rng: Random) -> ChaosBroker:
    return cluster.brokers[rng.choice(cluster.nodes)]


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
