"""A promise that is broken whenever a fault of one kind happens, however the rest of a run goes."""

import pytest

from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.broker import Broker

INVARIANT = "nobody loses power"
"""What breaks."""


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, runs in which a broker loses power fail."""
    lose_memory = Broker._lose_memory

    def fail(self: Broker, *, power: bool) -> None:
        if power:
            raise Violation(INVARIANT, "all groups", f"{self.node_id} lost it")
        lose_memory(self, power=power)

    monkeypatch.setattr(Broker, "_lose_memory", fail)
