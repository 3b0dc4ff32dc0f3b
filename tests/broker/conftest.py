"""The clock of a test in which a real node waits."""

import pytest
from trio.testing import MockClock


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    """Time as it passes, except in a block of `jumping`."""
    mock_clock.rate = 1.0
    return mock_clock
