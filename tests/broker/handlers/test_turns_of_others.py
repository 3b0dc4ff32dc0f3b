"""Requests with tens of thousands of elements: others on the loop have their turn meanwhile."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.turns import counting_turns
from tests.broker.nodes import open_node
from tidemark.broker import steps
from tidemark.broker.handlers import (
    CHANGES,
    HANDLERS,
)
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.messages import alter_client_quotas as quotas
from tidemark.protocol.messages import alter_configs, describe_configs, describe_quorum
from tidemark.protocol.messages import alter_partition_reassignments as reassignments
from tidemark.protocol.messages import confirm_leadership as confirms
from tidemark.protocol.messages import delete_records as records
from tidemark.protocol.messages import describe_producers as producers
from tidemark.protocol.messages import elect_leaders as elections
from tidemark.protocol.messages import move_leaders as moves
from tidemark.protocol.messages import offset_for_leader_epoch as epochs
from tidemark.protocol.messages import set_observers as observers
from tidemark.protocol.messages import write_txn_markers as markers
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.describe_replicas import DescribeReplicasRequest
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message

COUNT: Final = 100
AT_ONCE: Final = 10
NAMES: Final = [f"t-{number}" for number in range(COUNT)]
TOPIC: Final = 2

# None of them waits for anything, so whoever has a turn has been given it.
REQUESTS: Final[list[Message]] = [
    DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in NAMES], timeout_ms=100),
    CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None) for name in NAMES],
        timeout_ms=100,
        validate_only=False,
    ),
    alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=())
            for name in NAMES
        ],
        validate_only=False,
    ),
    quotas.AlterClientQuotasRequest(
        entries=[quotas.EntryData(entity=(), ops=()) for _ in NAMES], validate_only=True
    ),
    describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name, configuration_keys=None
            )
            for name in NAMES
        ]
    ),
    records.DeleteRecordsRequest(
        topics=[
            records.DeleteRecordsTopic(
                name="t", partitions=[records.DeleteRecordsPartition(partition_index=9, offset=0)]
            )
            for _ in NAMES
        ],
        timeout_ms=100,
    ),
    epochs.OffsetForLeaderEpochRequest(
        topics=[
            epochs.OffsetForLeaderTopic(
                topic="t",
                partitions=[epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0)],
            )
            for _ in NAMES
        ]
    ),
    describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.TopicData(
                topic_name="t", partitions=[describe_quorum.PartitionData(partition_index=0)]
            )
            for _ in NAMES
        ]
    ),
    producers.DescribeProducersRequest(
        topics=[producers.TopicRequest(name="t", partition_indexes=list(range(COUNT)))]
    ),
    DescribeReplicasRequest(topics=None),
    reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=100,
        topics=[
            reassignments.ReassignableTopic(
                name=name,
                partitions=[reassignments.ReassignablePartition(partition_index=0, replicas=[1])],
            )
            for name in NAMES
        ],
    ),
    moves.MoveLeadersRequest(
        timeout_ms=0,
        reason="",
        validate_only=False,
        moves=[moves.LeaderMove(topic="t", partition=each, target=1) for each in range(COUNT)],
    ),
    confirms.ConfirmLeadershipRequest(
        topics=[confirms.ConfirmTopic(topic="t", partitions=range(COUNT))], timeout_ms=20_000
    ),
    elections.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=0),
    elections.ElectLeadersRequest(
        election_type=1,
        topic_partitions=[elections.TopicPartitions(topic="t", partitions=range(COUNT))],
        timeout_ms=0,
    ),
    observers.SetObserversRequest(
        timeout_ms=100,
        partitions=[
            observers.ObservedPartition(topic=name, partition=0, observers=()) for name in NAMES
        ],
    ),
    markers.WriteTxnMarkersRequest(
        markers=[
            markers.WritableTxnMarker(
                producer_id=1,
                producer_epoch=0,
                transaction_result=True,
                topics=[],
                coordinator_epoch=0,
            )
            for _ in NAMES
        ]
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
async def test_others_have_their_turn_while_much_is_asked_for(
    tmp_path: Path, request_: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", AT_ONCE)
    key = api_of(type(request_)).key
    handle: Any = CHANGES[key].handle if key in CHANGES else HANDLERS[key]  # Any: whichever API's
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=COUNT))
        async with counting_turns() as turns:
            await ask(handle, node, request_, type(request_).last_version)
        assert turns.count >= COUNT // AT_ONCE - 1
