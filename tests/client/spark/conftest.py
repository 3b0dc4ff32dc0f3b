"""A client of the broker that all tests share, and a topic for each."""

import uuid
from collections.abc import Iterator

import pytest

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing import BlockingCluster


@pytest.fixture
def client(tidemark_session: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark_session.bootstrap) as opened:
        yield opened


@pytest.fixture
def topic(client: BlockingClient, request: pytest.FixtureRequest) -> str:
    name = f"{request.function.__name__:.100}-{uuid.uuid4().hex[:8]}"
    client.run(client.admin.create_topic, name, partitions=3)
    return name
