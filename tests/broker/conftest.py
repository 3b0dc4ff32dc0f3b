"""What a test of a real node can hold: its clock, and its disk."""

import pytest
from trio.testing import MockClock

from tests.broker.held_disk import HeldDisk


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    """Time as it passes, except in a block of `jumping`."""
    mock_clock.rate = 1.0
    return mock_clock


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> HeldDisk:
    """The disk of every node of the test; nothing is held yet."""
    return HeldDisk(monkeypatch)
