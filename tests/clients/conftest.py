"""One real broker process for all client tests; every test has a topic name of its own.

A test that restarts the broker has one of its own (`own_broker`).
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.acls import Acls
from tests.clients.guests import PASSWORD, Login
from tests.clients.guests.with_tidemark import connected
from tidemark.testing.process import BrokerProcess, open_broker_process
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

# Groups form at once, and members of the consumer protocol come often: the defaults wait seconds.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "3000",
    "offsets.topic.num.partitions": "4",
    "log.cleaner.backoff.ms": "200",
    "quota.window.num": "2",
}

WITH_ACLS = {
    **SETTINGS,
    "num.partitions": "1",
    "users": ",".join(f"{name}:{PASSWORD}" for name in ("admin", "alice", "bob")),
    "authorizer.class.name": "StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data_dir = tmp_path_factory.mktemp("clients") / "data"
    with open_broker_process(data_dir, settings=SETTINGS) as process:
        yield process


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with open_broker_process(tmp_path / "data", settings=SETTINGS) as process:
        yield process


@pytest.fixture(scope="session")
def broker_with_acls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data_dir = tmp_path_factory.mktemp("acls") / "data"
    with open_broker_process(data_dir, settings=WITH_ACLS) as process:
        yield process


@pytest.fixture
def admin(broker_with_acls: BrokerProcess) -> Login:
    """Who may do everything."""
    return Login(broker_with_acls.bootstrap, "admin")


@pytest.fixture
def alice(admin: Login) -> Login:
    """Who may do what the test allows her."""
    return admin._replace(user="alice")


@pytest.fixture
def bob(admin: Login) -> Login:
    return admin._replace(user="bob")


@pytest.fixture
def acls(admin: Login) -> Iterator[Acls]:
    """The ACLs of the test, of which none is left after it."""
    with connected(admin) as client:
        acls = Acls(client)
        yield acls
        acls.clear()


@pytest.fixture(scope="session")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with open_process_cluster(directory, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def cluster(started_cluster: ProcessCluster) -> Iterator[ProcessCluster]:
    """Three brokers; whichever a test has killed is started again after it."""
    yield started_cluster
    started_cluster.start_missing()


@pytest.fixture
def bootstrap(broker: BrokerProcess) -> str:
    return broker.bootstrap


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"
