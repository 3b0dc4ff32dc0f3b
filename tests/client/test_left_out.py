"""Against a broker that says nothing of what it was asked about: the client says so."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest
import trio

from tests.client.scripted_cluster import TOPIC, ScriptedCluster, open_scripted_cluster
from tests.client.scripted_peer import ALL_VERSIONS, Peer, open_peer
from tidemark.client import (
    Acl,
    Client,
    ClientSettings,
    End,
    ErrorCode,
    Operation,
    RequestError,
    ResourceType,
    TopicPartition,
)
from tidemark.client import open_client as open_trio_client
from tidemark.client.blocking import read_batches
from tidemark.client.coordinator import GroupMembership
from tidemark.client.transaction_descriptions import HangingTransaction
from tidemark.protocol.messages import api_versions, fetch, find_coordinator, metadata
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message
from tidemark.protocol.schema.wire_types import Array
from tidemark.protocol.types import Offset, ProducerId

HERE = TopicPartition(TOPIC, 0)
HANGING = HangingTransaction(
    partition=HERE,
    producer_id=ProducerId(7),
    epoch=0,
    coordinator_epoch=0,
    start=Offset(0),
    last_timestamp_ms=None,
)
ACL = Acl(
    principal="User:a", operation=Operation.READ, resource_type=ResourceType.TOPIC, name=TOPIC
)
TRANSACTIONAL = replace(
    ALL_VERSIONS,
    finalized_features=[
        api_versions.FinalizedFeatureKey(
            name="transaction.version", max_version_level=2, min_version_level=2
        )
    ],
    finalized_features_epoch=1,
)

Ask = Callable[[Client], Awaitable[object]]


@asynccontextmanager
async def open_silent_broker() -> AsyncIterator[Client]:
    """A client of a broker whose answers are empty, but for where everything is."""

    def answer(request: Message) -> Message | None:
        match request:
            case api_versions.ApiVersionsRequest():
                return TRANSACTIONAL
            case metadata.MetadataRequest():
                replica = metadata.MetadataResponsePartition(
                    partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
                )
                topic = metadata.MetadataResponseTopic(name=TOPIC, partitions=[replica])
                broker = metadata.MetadataResponseBroker(node_id=1, host=here.host, port=here.port)
                return metadata.MetadataResponse(brokers=[broker], controller_id=1, topics=[topic])
            case find_coordinator.FindCoordinatorRequest():
                found = find_coordinator.Coordinator(
                    key=request.coordinator_keys[0], node_id=1, host=here.host, port=here.port
                )
                return find_coordinator.FindCoordinatorResponse(coordinators=[found])
            case InitProducerIdRequest():
                return InitProducerIdResponse(producer_id=7, producer_epoch=0)
        return None

    async def serve(peer: Peer) -> None:
        while True:
            header, request = await peer.receive()
            await peer.answer(header, answer(request) or _empty(APIS[header.api_key].response))

    settings = ClientSettings(retry_timeout_seconds=1)
    async with open_peer(serve) as here, open_trio_client(str(here), settings=settings) as client:
        yield client


def _empty(response: type[Message]) -> Message:
    lists = [each.name for each in response.wire_fields if isinstance(each.type, Array)]
    return response(**dict.fromkeys(lists, ()))


async def commit_in_transaction(client: Client) -> None:
    async with client.producer(transactional_id="t") as producer, producer.transaction():
        await producer.send_offsets_to_transaction({HERE: 1}, GroupMembership(group="g"))


ASKED: dict[str, Ask] = {
    "list offsets": lambda client: client.admin.list_offsets({HERE: End()}),
    "delete records": lambda client: client.admin.delete_records({HERE: 1}),
    "describe producers": lambda client: client.admin.describe_producers([HERE]),
    "abort a transaction": lambda client: client.admin.abort_hanging_transaction(HANGING),
    "fetch commits": lambda client: client.admin.list_group_offsets("g", [HERE]),
    "commit": lambda client: client.admin.alter_group_offsets("g", {HERE: 1}),
    "commit in a transaction": commit_in_transaction,
    "create a topic": lambda client: client.admin.create_topic(TOPIC, partitions=1),
    "delete a topic": lambda client: client.admin.delete_topic(TOPIC),
    "add partitions": lambda client: client.admin.create_partitions(TOPIC, 2),
    "describe configs": lambda client: client.admin.describe_configs(TOPIC),
    "alter configs": lambda client: client.admin.alter_configs(TOPIC, {"retention.ms": "1"}),
    "describe a group": lambda client: client.admin.describe_group("g"),
    "delete a group": lambda client: client.admin.delete_group("g"),
    "create an ACL": lambda client: client.admin.create_acls([ACL]),
    "move a leader": lambda client: client.admin.move_leader(TOPIC, 0, to=2),
    "describe a transaction": lambda client: client.admin.describe_transaction("t"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_what_an_answer_leaves_out_is_an_error_that_names_it(ask: Ask) -> None:
    async with open_silent_broker() as client:
        with pytest.raises(
            RequestError, match=r"(t-0|topic t|group g|transactional id t|TOPIC t).*left out"
        ) as raised:
            await ask(client)
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_fetch_that_is_answered_with_nothing_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So is who has used up a quota by Kafka."""
    usual, empty = ScriptedCluster._fetch, [fetch.FetchResponse(responses=[])] * 3

    def answered(cluster: ScriptedCluster, node: int, request: Message) -> Message:
        return empty.pop() if empty else usual(cluster, node, request)

    monkeypatch.setattr(ScriptedCluster, "_fetch", answered)
    monkeypatch.setattr("tests.client.scripted_cluster._has_news", lambda answer: True)
    async with open_scripted_cluster() as cluster, open_trio_client(cluster.bootstrap) as client:
        async with client.producer() as producer:
            await producer.send(TOPIC, b"x", partition=0)
        read = partial(read_batches, cluster.bootstrap, HERE, 0, 1)
        (fetched,) = await trio.to_thread.run_sync(lambda: list(read()))
    assert (fetched.fetch_offset, fetched.next_offset) == (0, 1)
    assert not empty
