"""What another broker passes on is bytes of its own: they may be anything."""

from pathlib import Path

import pytest
import trio

from tests.broker.clusters import SECONDS_MAX, open_brokers
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.forward import (
    ForwardRequest,
    ForwardResponse,
    ProposeRequest,
    ProposeResponse,
)

# Wishes of a newer version look like these, so they end no connection.
WISHES = {
    "no JSON": b"\xff",
    "too deep": b"[" * 100_000,
    "no such command": b'{"do":"Sink"}',
    "half an id": b'{"do":"AllocateProducerIds","at_version":1,"node_id":1,"count":1.5}',
}


async def test_a_request_that_does_not_parse_ends_the_connection_and_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_brokers(tmp_path, 2) as brokers:
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        other = next(node for node in brokers.nodes if node is not leader)
        garbage = ForwardRequest(api_key=19, api_version=7, body=b"\xff" * 9)
        with pytest.raises(RequestError) as failed, trio.fail_after(SECONDS_MAX):
            await brokers.peers(other.node_id).call(leader.node_id, garbage, ForwardResponse)
        assert failed.value.code is ErrorCode.NETWORK_EXCEPTION
        lines = [each for each in caplog.records if "closing the connection" in each.message]
        assert ["Forward" in each.message for each in lines] == [True]
        assert not [each for each in caplog.records if each.exc_info]


async def test_a_wish_that_does_not_parse_is_refused_with_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_brokers(tmp_path, 2) as brokers:
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        other = next(node for node in brokers.nodes if node is not leader)
        for wish in WISHES.values():
            with trio.fail_after(SECONDS_MAX):
                answered = await brokers.peers(other.node_id).call(
                    leader.node_id, ProposeRequest(command=wish), ProposeResponse
                )
            assert answered.error_code == ErrorCode.INVALID_REQUEST
            assert "cannot be read" in (answered.error_message or "")
        assert not [each for each in caplog.records if each.exc_info]
