"""Produce while the lead of a partition is about to go elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.handlers.produce_connection import Connection, connect
from tests.broker.handlers.producing import batch, begin, new_topic, produce, request
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import produce as handler
from tidemark.broker.network.requests import NotNow
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["connect"]


class Held:
    """A connection whose request waits in a replica's line."""

    def __init__(self, replica: Replica) -> None:
        self.told: list[bool] = []
        replica.line.join(self, 1)

    def go_on(self, *, may_be_held: bool) -> None:
        self.told.append(may_be_held)


def is_held(node: Node, asked: ProduceRequest) -> bool:
    try:
        begin(node, asked)
    except NotNow:
        return True
    return False


@pytest.mark.parametrize("acks", [-1, 1, 0])
async def test_nothing_is_appended_or_answered_while_writes_are_held(
    tmp_path: Path, acks: int
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        replica.member.pause_writes()
        assert is_held(node, request(batch(b"a"), acks=acks))
        assert replica.log_end == 0
        replica.member.resume_writes()
        assert not is_held(node, request(batch(b"a"), acks=acks))
        assert replica.log_end == 1


async def test_a_request_with_one_held_partition_is_held_as_a_whole(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        flowing, held = await new_topic(node, "flowing"), await new_topic(node, "held")
        held.member.pause_writes()
        both = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=each.topic,
                    partition_data=[PartitionProduceData(index=0, records=batch(b"a"))],
                )
                for each in (flowing, held)
            ],
        )
        assert is_held(node, both)
        assert flowing.log_end == 0, "or it would be there twice once the request comes again"


async def test_who_comes_once_writes_flow_again_does_not_overtake_those_who_waited(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node), connect(node)
        for _ in range(2):
            client.answer(request(batch(b"a"), acks=1))
        replica.member.pause_writes()
        waiting = Held(replica)
        replica.member.resume_writes()
        with pytest.raises(NotNow):  # of a kind that is not decoded otherwise
            client.ask(request(batch(b"b"), acks=1))
        assert replica.log_end == 2
        replica.line.release()
        assert waiting.told == [True]
        client.answer(request(batch(b"b"), acks=1))
        assert replica.log_end == 3


async def test_the_line_moves_on_when_the_group_says_so(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        replica.member.pause_writes()
        waiting = Held(replica)
        await produce(node, request(batch(b"x"), topic=(await new_topic(node, "other")).topic))
        assert waiting.told == []
        replica.member.resume_writes()
        # The next turn takes it out of the group.
        await produce(node, request(batch(b"x"), topic="other"))
        replica._services.driver.touch()
        assert waiting.told == [True]


async def test_what_has_waited_long_enough_is_told_to_look_for_the_leader(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        replica.member.pause_writes()
        frame = memoryview(bytearray(encode(request(batch(b"a")), 9)))
        patient = context(9)
        patient.session.may_be_held = False
        answer = handler.handle(node, decode(ProduceRequest, 9, frame), patient)
        assert isinstance(answer, ProduceResponse)
        (topic,) = answer.responses
        assert topic.partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert replica.log_end == 0
        assert patient.session.may_be_held, "this holds for one request"


async def test_those_who_wait_for_a_partition_that_is_given_up_go_on(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        replica.member.pause_writes()
        waiting = Held(replica)
        topic = node.topics.get("t")
        assert topic is not None
        await node.topics.delete(topic)
        assert waiting.told == [True]
        assert not is_held(node, request(batch(b"a")))
