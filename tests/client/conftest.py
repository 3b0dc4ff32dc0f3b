"""One real broker for all of these tests; every test has a topic and a group of its own."""

import uuid
from collections.abc import AsyncIterator

import pytest

from tidemark.client import Client, open_client
from tidemark.testing import BlockingCluster


@pytest.fixture
async def client(tidemark_session: BlockingCluster) -> AsyncIterator[Client]:
    async with open_client(tidemark_session.bootstrap) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"
