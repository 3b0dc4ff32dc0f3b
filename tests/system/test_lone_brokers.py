"""Brokers that find their cluster changed, or not there, when they are started again."""

from pathlib import Path

from tests.system.clusters import wait_until
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import open_process_cluster

SETTINGS = {"offsets.topic.num.partitions": "1"}


def registered(client: BlockingClient) -> set[int]:
    return {each.node_id for each in client.run(client.admin.describe_cluster).brokers}


def restart(broker: BrokerProcess) -> None:
    assert broker.stop() == 0
    broker.start()


def test_a_broker_that_was_decommissioned_comes_back_by_a_start(tmp_path: Path) -> None:
    """The brokers that have forgotten it have been started since, and do not connect to it."""
    with open_process_cluster(tmp_path, count=2, settings=SETTINGS) as cluster:
        first, second = cluster.brokers.values()
        with open_client(first.bootstrap) as client:
            client.run(client.admin.decommission_broker, 2)
            second.stop()
            wait_until(lambda: registered(client) == {1}, "broker 2 is forgotten")
        restart(first)
        second.start()
        with open_client(first.bootstrap) as client:
            wait_until(lambda: registered(client) == {1, 2}, "broker 2 is known again")
        with open_client(second.bootstrap) as client:
            created = client.run(
                client.admin.create_topic, "both", partitions=2, replication_factor=2
            )
            assert created is not None
            found = client.run(client.admin.describe_topic, "both")
            assert all(set(each.replicas) == {1, 2} for each in found.partitions)


def test_a_broker_without_a_majority_says_whom_it_waits_for(tmp_path: Path) -> None:
    """All three were stopped soon after they had joined, and one is started."""
    with open_process_cluster(tmp_path, settings=SETTINGS) as cluster:
        first, second, third = cluster.brokers.values()
        for broker in (first, second, third):
            broker.stop()
        third.start()
        wait_until(lambda: "is not registered yet" in third.log, "it says so")
        assert (
            "broker 3 is not registered yet: NOT_CONTROLLER: the cluster's metadata need 2 of the "
            "brokers 1, 2 and 3, and 3 is there (broker 1: it cannot be reached: "
        ) in third.log
        second.start()
        with open_client(third.bootstrap) as client:
            wait_until(lambda: registered(client) == {2, 3}, "two are enough")
