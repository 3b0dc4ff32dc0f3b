"""Several brokers in the test's own process, and what a test can do to them."""

import logging
from collections.abc import Iterable

import pytest
import trio

from tidemark.client import Client, DeliveryFuture, RequestError, open_client
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


async def values(client: Client, topic: str) -> list[bytes | None]:
    async with client.consumer(topic, until_end=True) as consumer:
        return [record.value async for record in consumer]


async def settle(deliveries: Iterable[DeliveryFuture]) -> None:
    for delivery in deliveries:
        await delivery.wait()


async def test_a_killed_leader_costs_no_record_and_doubles_none() -> None:
    sent = [b"%d" % number for number in range(300)]
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            leader = await cluster.wait_leader("waves")
            async with client.producer(acks="all") as producer:
                first = [await producer.send("waves", value) for value in sent[:100]]
                await settle(first[:50])
                # The others may be anywhere: sent, appended, replicated, acknowledged.
                await cluster.kill(leader)
                rest = [await producer.send("waves", value) for value in sent[100:]]
                await settle([*first, *rest])
            assert await cluster.wait_leader("waves") != leader
            assert await values(client, "waves") == sent
            await cluster.start(leader)
            await cluster.wait_caught_up()
            kept = {
                broker.node.topics.replica_here("waves", 0).log_end
                for broker in cluster.brokers.values()
            }
            assert kept == {len(sent)}


async def test_a_broker_that_was_killed_has_something_to_do_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster() as cluster:
            for end, is_clean in ((cluster.stop, True), (cluster.kill, False)):
                async with open_client(cluster.bootstrap) as client, client.producer() as producer:
                    await (await producer.send("waves", b"")).wait()
                caplog.clear()
                await end()
                assert not cluster.brokers
                with caplog.at_level(logging.INFO):
                    await cluster.start()
                assert ("the last stop was not in order" not in caplog.text) is is_clean
            async with open_client(cluster.bootstrap) as client:
                assert len(await values(client, "waves")) == 2


async def test_a_leader_that_is_cut_off_acknowledges_nothing() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster:  # noqa: SIM117  # two ends, in order
            async with open_client(cluster.bootstrap) as client:
                await client.admin.create_topic("waves", partitions=1)
                leader = await cluster.wait_leader("waves")
                cluster.isolate(leader)
                # Asked only the broker that is cut off, and only for as long as it takes.
                async with (
                    open_client(cluster.bootstrap_of(leader)) as deceived,
                    deceived.producer(idempotent=False, delivery_timeout_seconds=0.5) as producer,
                ):
                    lost = await producer.send("waves", b"lost")
                    with pytest.raises((RequestError, OSError, TimeoutError)):
                        await lost.wait()
                await cluster.wait_leader("waves", other_than=leader)
                async with client.producer() as producer:
                    await (await producer.send("waves", b"kept")).wait()
                cluster.heal()
                await cluster.wait_caught_up()
                assert await values(client, "waves") == [b"kept"]


async def test_a_cut_lasts_over_a_restart_and_until_it_is_healed() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster:
            cluster.cut(1, 2)
            await cluster.restart(2)
            await cluster.wait_for(lambda: 3 in cluster.brokers[2].peers.up, "3 is up for 2")
            with pytest.raises(NotInTime, match="1 is up for 2"):
                await cluster.wait_for(
                    lambda: 1 in cluster.brokers[2].peers.up, "1 is up for 2", timeout_seconds=0.2
                )
            cluster.heal()
            await cluster.wait_for(lambda: 1 in cluster.brokers[2].peers.up, "1 is up for 2")


async def test_a_slow_disk_of_one_broker_holds_nobody_up_and_of_two_it_does() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            leader = await cluster.wait_leader("waves")
            one, other = (node for node in cluster.nodes if node != leader)
            async with client.producer() as producer:
                cluster.delay_disk(one, 60)
                await (await producer.send("waves", b"at once")).wait()
                cluster.delay_disk(other, 60)
                delivery = await producer.send("waves", b"later")
                with trio.move_on_after(0.3) as waiting:
                    await delivery.wait()
                assert waiting.cancelled_caught
                cluster.delay_disk(one, 0)
                await delivery.wait()
