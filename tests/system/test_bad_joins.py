"""Brokers that are started wrongly beside a cluster: each says in one line what to do, and the
cluster goes on.
"""

import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.clusters import bystander, newcomer, refused, waiting
from tidemark.testing.process import open_broker_process
from tidemark.testing.process_cluster import ProcessCluster


@pytest.fixture(autouse=True)
def unharmed(three: ProcessCluster) -> Iterator[None]:
    """No client notices anything, and no broker ends or says that it has a bug."""
    with bystander(three, f"bystander-{uuid.uuid4().hex[:8]}"):
        yield
    assert all(broker.is_running for broker in three.brokers.values())
    assert not any("Traceback" in broker.log for broker in three.brokers.values())


def test_a_directory_of_another_cluster_is_not_taken(three: ProcessCluster, tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data", arguments=["--node-id", "4"]) as foreign:
        foreign.stop()
    peers = three.brokers[1].peers
    said = refused(newcomer(tmp_path / "data", "--node-id", "4", "--join", peers))
    assert re.match(rf"tidemark: --join {peers} leads to another cluster than the data dir", said)
    assert said.endswith(
        "Give this broker an empty directory, or the address of a broker of its own cluster"
    )


def test_a_node_id_in_use_is_not_taken(three: ProcessCluster, tmp_path: Path) -> None:
    said = refused(newcomer(tmp_path / "x", "--node-id", "2", "--join", three.brokers[1].peers))
    assert said == (
        "tidemark: the cluster refuses broker 2: there is a broker 2 already, with another data "
        "directory: choose another node.id, or start it on its own directory"
    )


def test_two_brokers_cannot_have_the_same_directory(three: ProcessCluster) -> None:
    second = three.brokers[2]
    said = refused(newcomer(second.data_dir, "--node-id", "2", "--join", three.brokers[1].peers))
    assert said == (
        f"tidemark: the data directory {second.data_dir} is used by another broker (process "
        f"{second.pid}). Stop that one, or give this one a directory of its own"
    )


def test_addresses_that_another_broker_has_are_named_together(
    three: ProcessCluster, tmp_path: Path
) -> None:
    """What happens to who starts a second broker without any option."""
    first = three.brokers[1]
    broker = newcomer(tmp_path / "x", "--http", first.http, "--join", first.peers)
    broker.bootstrap, broker.peers = first.bootstrap, first.peers
    assert refused(broker) == (
        f"tidemark: {first.bootstrap}, {first.peers} and {first.http} are in use, perhaps by "
        "another broker: choose others with --listen, --peer-listen and --http"
    )


def test_a_broker_does_not_join_itself(three: ProcessCluster, tmp_path: Path) -> None:
    del three
    with open_broker_process(tmp_path / "ports") as other:
        peers = other.peers
    broker = newcomer(tmp_path / "x", "--node-id", "4", "--join", peers)
    broker.peers = peers
    assert refused(broker) == (
        f"tidemark: --join {peers} is this broker's own address: give it another broker's, or "
        "leave --join out to begin a new cluster"
    )


def test_an_address_where_nobody_is_is_tried_again(three: ProcessCluster, tmp_path: Path) -> None:
    del three
    broker = newcomer(tmp_path / "x", "--node-id", "4", "--join", "127.0.0.1:1")
    with waiting(broker) as next_warning:
        assert next_warning() == (
            "not in a cluster yet, and still trying: nobody answers at 127.0.0.1:1: "
            "Connection refused"
        )


def test_the_address_of_a_port_for_clients_is_recognised(
    three: ProcessCluster, tmp_path: Path
) -> None:
    address = three.brokers[1].bootstrap
    with waiting(newcomer(tmp_path / "x", "--node-id", "4", "--join", address)) as next_warning:
        said = next_warning()
    assert said.startswith(
        f"not in a cluster yet, and still trying: what is at {address} does not speak as brokers"
    )
    assert said.endswith("--join takes what the other broker's ready line has behind peers=")


def test_a_broker_that_lost_its_state_db_is_not_started(
    three: ProcessCluster, tmp_path: Path
) -> None:
    """It would vote without knowing what it has promised."""
    del tmp_path
    third = three.brokers[3]
    third.kill()
    state, aside = third.data_dir / "state.db", third.data_dir.parent / "state.db.aside"
    state.rename(aside)
    try:
        said = refused(newcomer(third.data_dir, "--node-id", "3"))
    finally:
        aside.rename(state)
        third.start()
    assert "state.db" in said
    assert str(third.data_dir) in said


def test_a_copy_from_before_the_last_start_is_not_taken(
    three: ProcessCluster, tmp_path: Path
) -> None:
    """It would not know what the broker has promised and acknowledged since."""
    third = three.brokers[3]
    third.kill()
    copy, data = tmp_path / "copy", third.data_dir
    shutil.copytree(data, copy)
    third.start()
    third.kill()
    aside = data.rename(tmp_path / "aside")
    try:
        copy.rename(data)
        said = refused(newcomer(data, "--node-id", "3", "--join", three.brokers[1].peers))
    finally:
        shutil.rmtree(data, ignore_errors=True)
        aside.rename(data)
        third.start()
    assert "another process has registered as start" in said
