"""Brokers that are drained, stopped, started, and let go, in real clusters."""

from shutil import rmtree

import pytest
import trio

from tests.testing.scraping import scraped
from tidemark.client import BrokerStatus, Client, ErrorCode, RequestError, open_client
from tidemark.testing import Cluster, open_cluster

QUICK = {
    "leader.balance.interval.ms": "300",
    "leader.balance.cool.down.ms": "500",
    "leader.balance.start.grace.ms": "500",
}


async def statuses(client: Client) -> dict[int, BrokerStatus]:
    return {each.node_id: each for each in await client.admin.describe_brokers()}


async def wait_leaders(client: Client, *, spread: int, over: int) -> dict[int, BrokerStatus]:
    """Until so many brokers lead, about equally many."""
    with trio.fail_after(20):
        while True:
            found = await statuses(client)
            led = sorted(each.leaders for each in found.values() if each.leaders)
            if len(led) == over and led[-1] - led[0] <= spread:
                return found
            await trio.sleep(0.1)


async def wait_shown(cluster: Cluster, *lines: str) -> None:
    """Until the metrics have these lines: who balances shows them, once it has looked."""
    with trio.fail_after(20):
        while True:
            page = await scraped(cluster)
            if all(line in page for line in lines):
                return
            await trio.sleep(0.1)


async def test_a_drained_broker_leads_nothing_over_its_restarts_until_it_is_resumed() -> None:
    async with (
        open_cluster(brokers=3, settings=QUICK) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        admin = client.admin
        await admin.create_topic("t", partitions=6)
        await wait_leaders(client, spread=0, over=3)
        controller = cluster.controller
        assert controller is not None
        await admin.drain_broker(controller)
        with trio.fail_after(20):
            drained = await admin.wait_broker_settled(controller)
        assert drained is not None
        assert (drained.state, drained.leaders, drained.replicas) == ("drained", 0, 6)
        assert cluster.controller not in (controller, None), "it leads no metadata, too"
        # Of two drains at once, the second would cost the quorum.
        other = next(node for node in cluster.nodes if node != controller)
        with pytest.raises(RequestError, match="voters in sync on brokers to count on") as refused:
            await admin.drain_broker(other)
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
        await cluster.restart(controller)
        await admin.create_topic("u", partitions=6)
        found = await wait_leaders(client, spread=0, over=2)
        assert (found[controller].state, found[controller].leaders) == ("drained", 0)
        await wait_shown(
            cluster,
            f'tidemark_broker_state{{broker="{controller}",state="drained"}} 1.0',
            f'tidemark_broker_leaders{{broker="{controller}"}} 0.0',
        )
        # It keeps its votes: two of three are needed to elect anybody.
        await cluster.stop(other)
        await cluster.wait_for(
            lambda: cluster.leader_of("t") is not None, "a leader is elected", timeout_seconds=20
        )
        await cluster.start(other)
        await admin.resume_broker(controller)
        await wait_leaders(client, spread=1, over=3)


async def test_a_broker_that_leaves_gives_up_its_replicas_and_is_forgotten() -> None:
    async with (
        open_cluster(brokers=4, settings=QUICK) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        admin = client.admin
        await admin.create_topic("t", partitions=8, replication_factor=3)
        async with client.producer() as producer:
            for number in range(80):
                await producer.send("t", b"%03d" % number, partition=number % 8)
        held = (await statuses(client))[4].replicas
        assert held > 0
        change = await admin.decommission_broker(4)
        assert change.replicas == held
        await admin.create_topic("u", partitions=4, replication_factor=3)
        with trio.fail_after(40):
            left = await admin.wait_broker_settled(4)
        assert left is not None
        assert (left.state, left.replicas) == ("decommissioned", 0)
        described = [await admin.describe_topic(name) for name in ("t", "u")]
        assert not any(4 in p.replicas for topic in described for p in topic.partitions)
        metadata = await admin.describe_metadata_quorum()
        assert metadata is not None
        assert 4 not in [each.node_id for each in metadata.voters]
        await cluster.stop(4)
        with trio.fail_after(20):
            while 4 in await statuses(client):  # noqa: ASYNC110 # nobody says when
                await trio.sleep(0.1)
        async with client.consumer("t", until_end=True) as consumer:
            values = [record.value async for record in consumer]
        assert len(values) == 80


async def test_the_number_of_a_forgotten_broker_is_free_for_one_on_an_empty_directory() -> None:
    async with (
        open_cluster(brokers=4, settings=QUICK) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        admin = client.admin
        await cluster.restart(4)  # the one that is to come counts its starts anew
        await admin.decommission_broker(4)
        with trio.fail_after(40):
            await admin.wait_broker_settled(4)
        await cluster.stop(4)
        with trio.fail_after(20):
            while 4 in await statuses(client):  # noqa: ASYNC110 # nobody says when
                await trio.sleep(0.1)
        rmtree(cluster.data_dir_of(4))
        await cluster.start(4)
        with trio.fail_after(20):
            while not all(each.is_alive for each in (await statuses(client)).values()):  # noqa: ASYNC110 # nobody says when
                await trio.sleep(0.1)
        assert [*sorted(await statuses(client))] == [1, 2, 3, 4]
        await admin.create_topic("t", partitions=1, replication_factor=4)
