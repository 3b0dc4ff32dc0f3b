"""Requests to any broker: passed on to the one that leads the metadata, and answered once."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock

from tests.broker.handlers.asking import ask
from tests.broker.jumping import jumping
from tests.broker.nodes import open_node
from tidemark.broker.handlers import CHANGES, passing_on
from tidemark.broker.metadata.controller import Controller
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidemark.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from tidemark.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tidemark.protocol.messages.peer.forward import (
    ForwardRequest,
    ForwardResponse,
    ProposeRequest,
)
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)

LEADER, OTHER = NodeId(1), NodeId(2)


@dataclass
class Following:
    """The metadata on a broker that does not lead them."""

    leader: NodeId | None = field(default=LEADER)
    leads: bool = False
    waited_for: list[int] = field(default_factory=list)
    state: ClusterState = field(default_factory=ClusterState)
    why_leaderless: str = "a majority is missing"

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        raise AssertionError("this broker does not lead")

    async def wait_version(self, version: int) -> None:
        self.waited_for.append(version)


@dataclass
class Line:
    """A connection to the leader."""

    leader: Node
    up: dict[NodeId, int] = field(default_factory=lambda: {LEADER: 1})
    calls: int = 0
    lose: list[str] = field(default_factory=list)
    """What happens to the next calls: lost before or after they were served, and so on."""

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        assert node == LEADER
        self.calls += 1
        lost = self.lose.pop(0) if self.lose else ""
        if lost == "before":
            raise RequestError(ErrorCode.NETWORK_EXCEPTION, "cut")
        if lost == "never":
            await trio.sleep_forever()
        if lost == "moved":
            return answer_type(error_code=ErrorCode.NOT_CONTROLLER)
        controller = self.leader.controller
        response: Message
        if isinstance(request, ProposeRequest):
            response = await controller.serve_propose(request)
        else:
            assert isinstance(request, ForwardRequest)
            response = await controller.serve_forward(
                request, partial(passing_on.answer_here, self.leader)
            )
        if lost == "after":
            raise RequestError(ErrorCode.NETWORK_EXCEPTION, "cut")
        assert isinstance(response, answer_type)
        return response


@asynccontextmanager
async def two_brokers(tmp_path: Path) -> AsyncIterator[tuple[Node, Following, Line]]:
    """A node that does not lead, its view of the metadata, and its connection to one that does."""
    async with open_node(tmp_path) as leader:
        following, line = Following(), Line(leader)
        yield replace(leader, controller=Controller(OTHER, following, line)), following, line


def new_topic(name: str = "waves", **fields: Any) -> CreateTopicsRequest:
    values = {"num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    topic = CreatableTopic(name=name, **{**values, **fields})
    return CreateTopicsRequest(topics=(topic,), timeout_ms=1000, validate_only=False)


async def create(node: Node, request: CreateTopicsRequest) -> tuple[int, str | None]:
    response = await ask(CHANGES[19].answer, node, request, 7)
    assert isinstance(response, CreateTopicsResponse)
    (made,) = response.topics
    return made.error_code, made.error_message


async def test_the_leader_answers_and_its_version_is_waited_for(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (node, following, line):
        assert await create(node, new_topic()) == (ErrorCode.NONE, None)
        assert line.leader.topics.get("waves") is not None
        code, message = await create(node, new_topic())
        assert code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert message
        # The cluster is founded, its broker registered, the topic made.
        assert following.waited_for == [3, 3]


async def test_the_leader_asks_nobody(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (_, _, line):
        assert await create(line.leader, new_topic()) == (ErrorCode.NONE, None)
        assert line.calls == 0


async def test_a_request_waits_for_a_leader_and_follows_it(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (node, following, line):
        following.leader, line.lose = None, ["moved"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, node, new_topic())
            await trio.sleep(0.2)
            assert line.calls == 0
            following.leader = LEADER
        assert line.calls == 2
        assert line.leader.topics.get("waves") is not None


REQUESTS: dict[int, Message] = {
    19: new_topic(),
    20: DeleteTopicsRequest(topics=(DeleteTopicState(name="waves"),), timeout_ms=1),
    33: AlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=2, resource_name="waves", configs=()),),
        validate_only=False,
    ),
    37: CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name="waves", count=2, assignments=None),),
        timeout_ms=1,
        validate_only=False,
    ),
    44: IncrementalAlterConfigsRequest(
        resources=(IncrementalResource(resource_type=2, resource_name="waves", configs=()),),
        validate_only=False,
    ),
}


@pytest.mark.parametrize("key", REQUESTS)
async def test_without_a_leader_every_item_is_answered(
    tmp_path: Path, clock: MockClock, key: int
) -> None:
    async with two_brokers(tmp_path) as (node, following, _):
        following.leader = None
        change = CHANGES[key]
        with jumping(clock):
            response = await ask(change.answer, node, REQUESTS[key], change.response.last_version)
        (items,) = (
            value
            for field in response.wire_fields
            if isinstance(value := getattr(response, field.name), tuple | list)
        )
        (item,) = items
        assert item.error_code == ErrorCode.NOT_CONTROLLER
        assert "majority" in item.error_message


async def test_what_may_have_been_done_is_not_done_again(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (node, _, line):
        line.lose = ["after"]
        code, message = await create(node, new_topic())
        assert code == ErrorCode.REQUEST_TIMED_OUT
        assert message is not None
        assert "only looking will tell" in message
        assert line.calls == 1


async def test_an_answer_that_never_comes_is_not_waited_for_forever(
    tmp_path: Path, clock: MockClock
) -> None:
    async with two_brokers(tmp_path) as (node, _, line):
        line.lose = ["never"]
        with jumping(clock):
            started = trio.current_time()
            code, _ = await create(node, new_topic())
            assert trio.current_time() - started == pytest.approx(5)
        assert code == ErrorCode.REQUEST_TIMED_OUT


async def test_producer_ids_come_from_the_leader_even_if_an_answer_is_lost(
    tmp_path: Path,
) -> None:
    async with two_brokers(tmp_path) as (node, _, line):
        line.lose = ["after", "before"]
        block = await node.controller.allocate_producer_ids(10)
        assert (block.first, block.end) == (10, 20)
        mine = await line.leader.controller.allocate_producer_ids(10)
        assert mine.first == 20


async def test_only_changes_are_taken_from_other_brokers(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (node, following, line):
        served = partial(passing_on.answer_here, node)
        asked = ForwardRequest(api_key=19, api_version=7, body=b"")
        refused = await node.controller.serve_forward(asked, served)
        assert refused.error_code == ErrorCode.NOT_CONTROLLER
        serve = line.leader.controller.serve_forward
        strange = await serve(replace(asked, api_key=999), served)
        assert strange.error_code == ErrorCode.UNSUPPORTED_VERSION
        metadata = ForwardRequest(api_key=3, api_version=0, body=b"\x00\x00\x00\x00")
        assert (await serve(metadata, served)).error_code == ErrorCode.INVALID_REQUEST
        assert not following.waited_for


async def test_a_broker_that_is_starting_has_others_ask_again() -> None:
    answered = await passing_on.not_yet(
        OTHER, ForwardRequest(api_key=19, api_version=5, timeout_ms=1000, body=b"")
    )
    assert isinstance(answered, ForwardResponse)
    assert answered.error_code == ErrorCode.NOT_CONTROLLER
