"""What brokers answer, byte for byte, while the leaders of a cluster change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio

from tests.testing.raw import RawClient, batch, open_raw
from tidemark.broker.metadata import controller, made_topics
from tidemark.client import Client, open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.list_offsets import ListOffsetsPartitionResponse
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tidemark.protocol.records.records import decode_records
from tidemark.testing import Cluster, open_cluster

SECONDS_MAX: Final = 30
"""For a test as a whole, on a machine that is busy with others."""
RESIGNED_SECONDS_MAX: Final = 6
"""Within this a leader without a majority has noticed; the failure timeout is 2 s."""
NOBODY: Final = -1
LEADER_SINCE: Final = 10
"""The version of Produce from which on it names the leader."""


@asynccontextmanager
async def open_waves(min_insync: int = 2) -> AsyncIterator[tuple[Cluster, Client, int]]:
    """Three brokers, with a replica of the one partition of `waves` on each; who leads it."""
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            configs = {"min.insync.replicas": str(min_insync)}
            await client.admin.create_topic("waves", partitions=1, configs=configs)
            yield cluster, client, await cluster.wait_leader("waves")


def followers(cluster: Cluster, leader: int) -> tuple[int, int]:
    one, other = (node for node in cluster.nodes if node != leader)
    return one, other


@asynccontextmanager
async def open_raw_to(cluster: Cluster, node: int) -> AsyncIterator[RawClient]:
    async with open_raw(cluster.bootstrap_of(node)) as raw:
        yield raw


def outcome(answer: ProduceResponse) -> PartitionProduceResponse:
    return answer.responses[0].partition_responses[0]


async def values(client: Client) -> list[bytes | None]:
    async with client.consumer("waves", until_end=True) as consumer:
        return [record.value async for record in consumer]


# NOT_LEADER_OR_FOLLOWER


async def test_who_does_not_lead_names_the_leader_and_its_address_to_a_producer() -> None:
    async with open_waves() as (cluster, _, leader):
        epoch = cluster.brokers[leader].node.topics.replica_here("waves", 0).epoch
        async with open_raw_to(cluster, followers(cluster, leader)[0]) as raw:
            answer = await raw.produce("waves", batch(b"astray"), version=LEADER_SINCE)
            refused = outcome(answer)
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert refused.current_leader.leader_id == leader
            assert refused.current_leader.leader_epoch == epoch
            (endpoint,) = answer.node_endpoints
            assert endpoint.node_id == leader
            assert f"{endpoint.host}:{endpoint.port}" == cluster.bootstrap_of(leader)
            # An older producer is told nothing that it could not read.
            older = await raw.produce("waves", batch(b"astray"), version=LEADER_SINCE - 1)
            assert outcome(older).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_who_does_not_lead_names_the_leader_to_a_consumer() -> None:
    async with open_waves() as (cluster, _, leader):
        for follower in followers(cluster, leader):
            async with open_raw_to(cluster, follower) as raw:
                answer = await raw.fetch("waves")
                assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert answer.current_leader.leader_id == leader


async def test_a_broker_without_a_replica_names_the_leader_too() -> None:
    async with open_waves() as (cluster, client, _):
        await client.admin.create_topic("puddle", partitions=1, replication_factor=1)
        leader = await cluster.wait_leader("puddle")
        async with open_raw_to(cluster, followers(cluster, leader)[0]) as raw:
            answer = await raw.produce("puddle", batch(b"astray"))
            while outcome(answer).current_leader.leader_id == NOBODY:
                await trio.sleep(0.01)  # it may not have heard of that leader yet
                answer = await raw.produce("puddle", batch(b"astray"))
            assert outcome(answer).current_leader.leader_id == leader
            assert [endpoint.node_id for endpoint in answer.node_endpoints] == [leader]
            assert (await raw.fetch("puddle")).current_leader.leader_id == leader


async def test_nobody_is_named_where_nobody_leads() -> None:
    async with open_waves() as (cluster, _, leader):
        await cluster.kill(*followers(cluster, leader))
        await cluster.wait_for(lambda: cluster.leader_of("waves") is None, "nobody leads")
        async with open_raw_to(cluster, leader) as raw:
            answer = await raw.produce("waves", batch(b"astray"))
            assert outcome(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert outcome(answer).current_leader.leader_id == -1
            assert not answer.node_endpoints


# Epochs


async def test_a_client_with_an_older_epoch_is_fenced_and_one_with_a_newer_told_to_wait() -> None:
    async with open_waves() as (cluster, _, leader):
        await cluster.restart(leader)
        await cluster.wait_caught_up()
        leader = await cluster.wait_leader("waves")
        epoch = cluster.brokers[leader].node.topics.replica_here("waves", 0).epoch
        async with open_raw_to(cluster, leader) as raw:
            for told, code in (
                (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
                (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
                (epoch, ErrorCode.NONE),
            ):
                assert (await raw.fetch("waves", epoch=told)).error_code == code
                assert (await raw.list_end("waves", epoch=told)).error_code == code
                answer = await raw.epoch_end("waves", epoch, current=told)
                assert answer.error_code == code


async def test_the_end_is_not_told_until_the_new_leader_knows_what_is_committed() -> None:
    async with open_waves() as (cluster, client, leader):
        async with client.producer() as producer:
            await (await producer.send("waves", b"committed")).wait()
        # What the next leader opens its epoch with has to be synced by a majority of two.
        for node in followers(cluster, leader):
            cluster.delay_disk(node, 0.5)
        await cluster.kill(leader)
        told = set[ErrorCode]()
        end = None
        while end is None:
            for node in followers(cluster, leader):
                async with open_raw_to(cluster, node) as raw:
                    answer = await raw.list_end("waves")
                told.add(ErrorCode(answer.error_code))
                end = answer if answer.error_code == ErrorCode.NONE else end
        assert told == {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.NONE,
        }
        assert isinstance(end, ListOffsetsPartitionResponse)
        assert end.offset == 1


# Too few replicas


async def test_too_few_replicas_before_the_append_leave_nothing_behind() -> None:
    async with open_waves(min_insync=3) as (cluster, _, leader):
        gone = followers(cluster, leader)[0]
        await cluster.kill(gone)
        peers = cluster.brokers[leader].peers
        await cluster.wait_for(lambda: gone not in peers.up, "the leader has noticed")
        async with open_raw_to(cluster, leader) as raw:
            answer = await raw.produce("waves", batch(b"refused"))
            assert outcome(answer).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert (await raw.list_end("waves")).offset == 0


async def test_too_few_replicas_after_the_append_say_so_and_a_repetition_is_no_second() -> None:
    async with open_waves(min_insync=3) as (cluster, client, leader):
        slow, _ = followers(cluster, leader)
        async with open_raw_to(cluster, leader) as raw, trio.open_nursery() as nursery:
            first = outcome(await raw.produce("waves", batch(b"first", sequence=0)))
            assert first.error_code == ErrorCode.NONE
            cluster.delay_disk(slow, 60)
            answers: list[PartitionProduceResponse] = []

            async def produce() -> None:
                answers.append(outcome(await raw.produce("waves", batch(b"second", sequence=1))))

            nursery.start_soon(produce)
            leading = cluster.brokers[leader].node.topics.replica_here("waves", 0)
            await cluster.wait_for(lambda: leading.high_watermark == 2, "two have it")
            assert not answers
            await cluster.kill(slow)
            await cluster.wait_for(lambda: answers, "the producer is answered")
            assert answers[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            await cluster.start(slow)
            await cluster.wait_caught_up()
            again = outcome(await raw.produce("waves", batch(b"second", sequence=1)))
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 1)
        assert await values(client) == [b"first", b"second"]


# A leader that resigns


async def test_who_waits_is_answered_when_the_leader_has_lost_its_majority() -> None:
    async with open_waves() as (cluster, _, leader):
        async with (
            open_raw_to(cluster, leader) as reader,
            open_raw_to(cluster, leader) as writer,
            trio.open_nursery() as nursery,
        ):
            answers: list[int] = []

            async def fetch() -> None:
                answers.append((await reader.fetch("waves", wait_ms=30_000)).error_code)

            async def produce() -> None:
                answers.append(outcome(await writer.produce("waves", batch(b"alone"))).error_code)

            nursery.start_soon(fetch)
            await trio.sleep(0.1)
            cluster.isolate(leader)
            with trio.fail_after(RESIGNED_SECONDS_MAX):
                nursery.start_soon(produce)
                await cluster.wait_for(lambda: len(answers) == 2, "both are answered")
        # Neither says that anything failed for good: who is asked next knows more.
        assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


async def test_what_is_committed_is_read_until_the_leader_resigns_and_then_refused() -> None:
    async with open_waves() as (cluster, client, leader):
        async with client.producer() as producer:
            await (await producer.send("waves", b"committed")).wait()
        async with open_raw_to(cluster, leader) as raw:
            await cluster.kill(*followers(cluster, leader))
            cluster.isolate(leader)
            with trio.fail_after(RESIGNED_SECONDS_MAX):
                while (answer := await raw.fetch("waves")).error_code == ErrorCode.NONE:
                    assert isinstance(answer.records, memoryview)
                    assert [each.value for each in decode_records(answer.records)] == [b"committed"]
                    await trio.sleep(0.01)
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_minority_that_returns_gives_up_what_it_had_alone() -> None:
    async with open_waves(min_insync=1) as (cluster, client, leader):
        async with client.producer() as producer:
            await (await producer.send("waves", b"committed")).wait()
        cluster.isolate(leader)
        async with open_raw_to(cluster, leader) as raw:
            # Acknowledged by the leader alone, as acks=1 asks; nobody can read them.
            for value in (b"lost", b"lost too"):
                answer = await raw.produce("waves", batch(value), acks=1)
                assert outcome(answer).error_code == ErrorCode.NONE
            assert (await raw.list_end("waves")).offset == 1
        await cluster.wait_leader("waves", other_than=leader)
        async with client.producer() as producer:
            await (await producer.send("waves", b"after")).wait()
        cluster.heal()
        await cluster.wait_caught_up()
        ends = {
            broker.node.topics.replica_here("waves", 0).log_end
            for broker in cluster.brokers.values()
        }
        assert ends == {2}
        assert await values(client) == [b"committed", b"after"]


async def test_a_broker_without_the_others_sends_a_producer_that_wants_an_id_on() -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    async with open_waves() as (cluster, _, leader):
        cluster.isolate(leader)
        async with open_raw_to(cluster, leader) as raw:
            answer = await raw.ask(request, 4, InitProducerIdResponse)
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        async with open_raw_to(cluster, followers(cluster, leader)[0]) as raw:
            answer = await raw.ask(request, 4, InitProducerIdResponse)
            assert answer.error_code == ErrorCode.NONE


async def test_who_is_cut_off_says_soon_that_what_would_have_to_be_made_is_not_there_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that leads the metadata, too: it does not know yet that it has lost its majority."""
    for module in (controller, made_topics):
        monkeypatch.setattr(module, "WAIT_SECONDS_MIN", 0.3)
    async with open_waves() as (cluster, _, _):
        leads = cluster.controller
        assert leads is not None
        for node in cluster.nodes:
            cluster.isolate(node)
        for node in (leads, followers(cluster, leads)[0]):
            with trio.fail_after(5):
                await check_nothing_can_be_made(cluster, node)


async def check_nothing_can_be_made(cluster: Cluster, node: int) -> None:
    group = FindCoordinatorRequest(key="watchers", key_type=0)
    topic = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    async with (
        open_raw_to(cluster, node) as one,
        open_raw_to(cluster, node) as other,
        trio.open_nursery() as asking,
    ):

        async def find() -> None:
            told = await one.ask(group, 3, FindCoordinatorResponse)
            assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

        asking.start_soon(find)
        (shown,) = (await other.ask(topic, 9, MetadataResponse)).topics
        assert shown.error_code == ErrorCode.LEADER_NOT_AVAILABLE
