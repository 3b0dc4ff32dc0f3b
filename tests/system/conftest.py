"""One broker, and one cluster, that hostile clients share; whoever harms a broker has its own."""

import uuid
from collections.abc import Iterator

import pytest

from tests.system.attacks import Bystander, bystander
from tidemark.testing.process import BrokerProcess, open_broker_process
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster


@pytest.fixture(scope="session")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Attacked by one test after another, and never the worse for it."""
    settings = {"max.connections": "1200", "offsets.topic.num.partitions": "1"}
    with open_broker_process(
        tmp_path_factory.mktemp("victim") / "data", settings=settings
    ) as process:
        yield process
        assert "Traceback" not in process.log
        assert process.stop() == 0


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """Three brokers that have joined each other; every test leaves them running."""
    settings = {"offsets.topic.num.partitions": "1"}
    with open_process_cluster(tmp_path_factory.mktemp("three"), settings=settings) as cluster:
        yield cluster


@pytest.fixture
def unharmed(victim: BrokerProcess) -> Iterator[Bystander]:
    """Another client of the victim, which must notice nothing of the test."""
    with bystander(victim.bootstrap, f"bystander-{uuid.uuid4().hex}") as client:
        yield client


@pytest.fixture(scope="module")
def other(broker: BrokerProcess) -> Iterator[Bystander]:
    """Another client of a broker that a module has to itself, all the time."""
    with bystander(broker.bootstrap, "bystander") as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"
