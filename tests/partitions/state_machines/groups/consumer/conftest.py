"""One group coordinator for each test of the consumer protocol."""

import pytest

from tests.partitions.state_machines.groups.consumer.clients import topics
from tests.partitions.state_machines.groups.driver import Coordinator


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))
