"""What a broker makes of another one's answer to one of Kafka's own requests."""

from collections.abc import Mapping
from typing import TypeVar

import pytest

from tidemark.broker.peers.asking import ask_broker
from tidemark.protocol.codec import encode
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.peer.ask import AskResponse
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)

THERE = NodeId(2)
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class Answering:
    """A connection to a broker that answers so."""

    def __init__(self, answer: AskResponse) -> None:
        self._answer = answer
        self.up: Mapping[NodeId, int] = {THERE: 1}

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        assert isinstance(self._answer, answer_type)
        return self._answer


async def ask(answer: AskResponse) -> HeartbeatResponse:
    return await ask_broker(Answering(answer), THERE, REQUEST, HeartbeatResponse)


async def test_an_answer_is_read_in_the_newest_version() -> None:
    version = api_of(HeartbeatRequest).max_version
    answer = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert await ask(AskResponse(body=encode(answer, version))) == answer


async def test_what_cannot_be_read_is_an_error_of_the_one_request() -> None:
    with pytest.raises(
        RequestError, match=r"broker 2 answered Heartbeat .* cannot be read"
    ) as told:
        await ask(AskResponse(body=b"\x00"))
    assert told.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
