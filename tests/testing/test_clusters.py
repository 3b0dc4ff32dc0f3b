"""Several brokers in the test's own process, and what a test can do to them."""

import pytest
import trio

from tidemark.client import open_client
from tidemark.testing import NotInTime, open_blocking_cluster, open_cluster

SECONDS_MAX = 30
"""For a test as a whole, on a machine that is busy with others."""


async def test_three_brokers_know_each_other_and_any_may_be_asked() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster:
            assert cluster.nodes == (1, 2, 3)
            assert len(set(cluster.bootstrap.split(","))) == 3
            for node in cluster.nodes:
                async with open_client(cluster.bootstrap_of(node)) as client:
                    seen = await client.admin.describe_cluster()
                    assert {broker.node_id for broker in seen.brokers} == {1, 2, 3}
                    await client.admin.create_topic(f"by-{node}")
                    (topic,) = await client.admin.describe_topics([f"by-{node}"])
                    assert {len(partition.replicas) for partition in topic.partitions} == {3}


async def test_a_cluster_that_was_stopped_comes_back_at_the_same_addresses() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster:
            before = cluster.bootstrap
            async with open_client(cluster.bootstrap) as client:
                await client.admin.create_topic("kept")
            await cluster.restart()
            assert cluster.bootstrap == before
            async with open_client(cluster.bootstrap) as client:
                assert "kept" in [topic.name for topic in await client.admin.list_topics()]


async def test_what_several_brokers_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"node\.id: several brokers"):
        async with open_cluster(brokers=3, settings={"node.id": "7"}):
            pass


async def test_who_waits_in_vain_is_told_for_what_and_how_things_stand() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(NotInTime, match=r"0\.01 s: the moon is blue\. broker 1: controller 1"):
            await cluster.wait_for(lambda: False, "the moon is blue", timeout_seconds=0.01)


def test_the_blocking_twin_opens_several_too() -> None:
    with open_blocking_cluster(brokers=3) as cluster:
        assert len(set(cluster.bootstrap.split(","))) == 3
        cluster.restart(2)
