"""Every scenario is played both ways: see `twins`."""

from collections.abc import Iterator

import pytest

from tests.scenarios.twins import both_ways


@pytest.fixture(autouse=True)
def _both_ways() -> Iterator[None]:
    with both_ways():
        yield
