"""Names as long as a string can be, and longer: their own matter, and nobody else's."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system import attacks
from tests.system.attacks import SECONDS, Peer
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages import (
    alter_configs,
    create_topics,
    elect_leaders,
    find_coordinator,
    init_producer_id,
    join_group,
    sync_group,
)
from tidemark.protocol.primitives import STRING_BYTES_MAX, encode_uvarint
from tidemark.testing.process import BrokerProcess, open_broker_process

LONGEST = "x" * STRING_BYTES_MAX


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    with open_broker_process(tmp_path / "data", settings=settings) as process:
        yield process
        assert "Traceback" not in process.log
        assert process.stop() == 0


def wait_coordinator(peer: Peer, name: str, kind: int) -> None:
    request = find_coordinator.FindCoordinatorRequest(key=name, key_type=kind)
    deadline = time.monotonic() + SECONDS
    while peer.ask(request, 3, find_coordinator.FindCoordinatorResponse).error_code:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def init_of(name: str) -> init_producer_id.InitProducerIdRequest:
    return init_producer_id.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=60_000
    )


def begin_producer(peer: Peer, name: str) -> ErrorCode:
    answer = peer.ask(init_of(name), 4, init_producer_id.InitProducerIdResponse)
    return ErrorCode(answer.error_code)


def joining(group: str, kind: str, member: str) -> join_group.JoinGroupRequest:
    return join_group.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member,
        protocol_type=kind,
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def join_and_sync(peer: Peer, group: str, kind: str) -> ErrorCode:
    member = ""
    while True:
        joined = peer.ask(joining(group, kind, member), 9, join_group.JoinGroupResponse)
        member = joined.member_id
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            break
    assert joined.error_code == ErrorCode.NONE
    request = sync_group.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=member,
        protocol_type=kind,
        protocol_name="range",
        assignments=[sync_group.SyncGroupRequestAssignment(member_id=member, assignment=b"a")],
    )
    return ErrorCode(peer.ask(request, 5, sync_group.SyncGroupResponse).error_code)


@pytest.mark.parametrize(("group", "kind"), [(LONGEST, "consumer"), ("g", LONGEST)])
def test_the_longest_names_of_groups_are_names(
    broker: BrokerProcess, group: str, kind: str
) -> None:
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 0)
        assert join_and_sync(peer, group, kind) is ErrorCode.NONE


def test_the_longest_transactional_id_is_one(broker: BrokerProcess) -> None:
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 1)
        assert begin_producer(peer, LONGEST) is ErrorCode.NONE


def test_a_longer_name_ends_its_connection_and_nothing_else(broker: BrokerProcess) -> None:
    """As with Kafka. A compact length could say it; what it would be kept in has two bytes."""
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 1)
        assert begin_producer(peer, LONGEST) is ErrorCode.NONE
        frame = encode_request(init_of(LONGEST), 4, 7, "peer")[4:]
        length = encode_uvarint(len(LONGEST) + 1)
        assert length + LONGEST.encode() in frame
        longer = encode_uvarint(len(LONGEST) + 2)
        peer.send_frame(frame.replace(length + LONGEST.encode(), longer + LONGEST.encode() + b"x"))
        assert peer.is_closed()
    with Peer(broker.bootstrap) as peer:
        assert begin_producer(peer, "other") is ErrorCode.NONE


def test_a_client_with_the_longest_name_gets_a_member_id_that_every_version_can_say(
    broker: BrokerProcess,
) -> None:
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 0)
        request = joining("g", "consumer", "")
        peer.send(encode_request(request, 4, 7, LONGEST))
        joined = peer.read(request, 4, join_group.JoinGroupResponse)
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert joined.member_id.startswith("x")


def test_what_is_said_of_the_longest_names_is_answered_in_the_oldest_version(
    broker: BrokerProcess,
) -> None:
    """A sentence that quotes one would not fit beside it into a string."""
    with Peer(broker.bootstrap) as peer:
        creation = attacks.creation(LONGEST)
        created = peer.ask(creation, 2, create_topics.CreateTopicsResponse).topics[0]
        assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        altered = peer.ask(
            alter_configs.AlterConfigsRequest(
                resources=[
                    alter_configs.AlterConfigsResource(
                        resource_type=4,
                        resource_name=LONGEST,
                        configs=[alter_configs.AlterableConfig(name=LONGEST, value=LONGEST)],
                    )
                ],
                validate_only=False,
            ),
            0,
            alter_configs.AlterConfigsResponse,
        )
        assert altered.responses[0].error_code == ErrorCode.INVALID_REQUEST
        elected = peer.ask(
            elect_leaders.ElectLeadersRequest(
                topic_partitions=[elect_leaders.TopicPartitions(topic=LONGEST, partitions=[0])],
                timeout_ms=1000,
            ),
            0,
            elect_leaders.ElectLeadersResponse,
        )
        result = elected.replica_election_results[0].partition_result[0]
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
