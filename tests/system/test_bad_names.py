"""Names that are longer than what is to be written of them: their own matter, and nobody else's."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.attacks import SECONDS, Peer
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import find_coordinator, init_producer_id, join_group, sync_group
from tidemark.testing.process import BrokerProcess, open_broker_process

LONG = "x" * 40_000
"""A compact string may be that long. A record has two bytes for its length."""


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


def begin_producer(peer: Peer, name: str) -> ErrorCode:
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=60_000
    )
    answer = peer.ask(request, 4, init_producer_id.InitProducerIdResponse)
    return ErrorCode(answer.error_code)


def join_and_sync(peer: Peer, group: str, kind: str) -> ErrorCode:
    member = ""
    while True:
        joined = peer.ask(
            join_group.JoinGroupRequest(
                group_id=group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member,
                protocol_type=kind,
                protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            9,
            join_group.JoinGroupResponse,
        )
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


@pytest.mark.parametrize(("group", "kind"), [(LONG, "consumer"), ("g", LONG)])
def test_a_group_that_cannot_be_written_down_harms_no_other(
    broker: BrokerProcess, group: str, kind: str
) -> None:
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 0)
        assert join_and_sync(peer, group, kind) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert join_and_sync(peer, "other", "consumer") is ErrorCode.NONE


def test_a_transactional_id_that_cannot_be_written_down_harms_no_other(
    broker: BrokerProcess,
) -> None:
    with Peer(broker.bootstrap) as peer:
        wait_coordinator(peer, "any", 1)
        assert begin_producer(peer, LONG) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert begin_producer(peer, "other") is ErrorCode.NONE
