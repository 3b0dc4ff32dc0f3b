"""Every scenario is played both ways: see `twins`. And it comes where it says: see `marks`."""

from collections.abc import Generator, Iterator

import pytest

from tests.scenarios.marks import REACHED
from tests.scenarios.twins import both_ways
from tidemark.partitions.raft.marks import collecting


@pytest.fixture(autouse=True)
def _both_ways() -> Iterator[None]:
    with both_ways():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    assert isinstance(item, pytest.Function)
    wanted = REACHED.get((item.module.__name__.rpartition(".")[2], item.originalname))
    if wanted is None:
        return (yield)
    with collecting() as reached:
        outcome = yield
    assert not wanted - reached.keys(), f"it does not reach {sorted(wanted - reached.keys())}"
    return outcome
