"""A broker that stands still: what others notice of it, and what becomes of it when it goes on."""

import pytest
import trio

from tests.testing.raw import batch, open_raw
from tidemark.client import open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.testing import open_blocking_cluster, open_cluster

SECONDS_MAX = 30
"""For a test as a whole, on a machine that is busy with others."""


async def test_a_paused_broker_answers_nobody_until_it_goes_on() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster() as cluster, open_raw(cluster.bootstrap) as raw:
            async with open_client(cluster.bootstrap) as client:
                await client.admin.create_topic("waves", partitions=1)
            cluster.pause(1)
            answered = list[int]()

            async def produce() -> None:
                answer = await raw.produce("waves", batch(b"held"))
                answered.append(answer.responses[0].partition_responses[0].error_code)

            async with trio.open_nursery() as asking:
                asking.start_soon(produce)
                # Who comes now is not refused: its kernel takes the connection.
                async with open_raw(cluster.bootstrap) as late:
                    with trio.move_on_after(0.3):
                        answered.append((await late.list_end("waves")).error_code)
                assert not answered
                # Nor is anything done for it.
                assert cluster.broker.node.topics.replica_here("waves", 0).log_end == 0
                cluster.resume(1)
            assert answered == [ErrorCode.NONE]


async def test_a_parked_fetch_does_not_time_out_while_its_broker_stands_still() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster() as cluster, open_raw(cluster.bootstrap) as raw:
            async with open_client(cluster.bootstrap) as client:
                await client.admin.create_topic("waves", partitions=1)
            async with trio.open_nursery() as nursery:
                answered = trio.Event()

                async def fetch() -> None:
                    await raw.fetch("waves", wait_ms=200)
                    answered.set()

                nursery.start_soon(fetch)
                await trio.sleep(0.05)
                cluster.pause(1)
                await trio.sleep(0.4)
                assert not answered.is_set()
                cluster.resume()
                await answered.wait()


async def test_a_leader_that_stood_still_is_replaced_and_told_so_when_it_goes_on() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            leader = await cluster.wait_leader("waves")
            cluster.pause(leader)
            async with open_raw(cluster.bootstrap_of(leader)) as raw, trio.open_nursery() as asking:
                told = list[int]()

                async def produce() -> None:
                    answer = await raw.produce("waves", batch(b"late"))
                    told.append(answer.responses[0].partition_responses[0].error_code)

                asking.start_soon(produce)
                successor = await cluster.wait_leader("waves", other_than=leader)
                async with (
                    open_client(cluster.bootstrap_of(successor)) as other,
                    other.producer() as producer,
                ):
                    await (await producer.send("waves", b"meanwhile")).wait()
                assert not told
                cluster.resume(leader)
            # It may have taken the record for a moment; it never acknowledged it.
            assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
            await cluster.wait_caught_up()
            async with client.consumer("waves", until_end=True) as consumer:
                assert [record.value async for record in consumer] == [b"meanwhile"]


@pytest.mark.parametrize("end", ["kill", "stop", "nothing"])
def test_a_paused_broker_can_be_ended_and_started_again(end: str) -> None:
    with open_blocking_cluster(brokers=3) as cluster:
        cluster.pause(2)
        if end == "nothing":
            return
        if end == "kill":
            cluster.kill(2)
        else:
            cluster.stop(2)
        cluster.start(2)
        cluster.wait_caught_up()
