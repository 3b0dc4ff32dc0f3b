"""The pytest plugin of `tidemark`; pytest loads it by its entry point.

`tidemark` is a broker of the test's own, `tidemark_session` one that all tests of the run share.
Both serve any client from any kind of test, since the broker runs in a thread of its own. A test
or a module changes the broker's settings by overriding the fixture `tidemark_settings`.

Nothing of the broker is imported before a test asks for one.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidemark.testing.blocking import BlockingCluster


@pytest.fixture(scope="session")
def tidemark_settings() -> Mapping[str, str]:
    """The settings of the brokers that the fixtures start; override it to change them."""
    return {}


@pytest.fixture
def tidemark(tidemark_settings: Mapping[str, str]) -> "Iterator[BlockingCluster]":
    """A broker for this test alone: `tidemark.bootstrap` is its address."""
    from tidemark.testing.blocking import open_blocking_cluster

    with open_blocking_cluster(settings=tidemark_settings) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tidemark_session(tidemark_settings: Mapping[str, str]) -> "Iterator[BlockingCluster]":
    """A broker that all tests share; give each test a topic of its own.

    Its settings are those of the first test that asks for it, so override them for all.
    """
    from tidemark.testing.blocking import open_blocking_cluster

    with open_blocking_cluster(settings=tidemark_settings) as cluster:
        yield cluster
