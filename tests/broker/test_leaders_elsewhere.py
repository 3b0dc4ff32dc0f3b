"""What a broker learns from others of leaders that it does not hear, and how often it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import trio
from trio.testing import MockClock

from tests.broker.liveness import ME, THREE, TWO, FakeLiveness, three
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import metadata
from tidemark.broker.leaders_elsewhere import LeadersElsewhere
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import NO_CONNECTION, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidemark.protocol.messages.peer.ask import AskRequest, AskResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)

WAVES = UUID(int=77)


@dataclass
class Third:
    """Broker 3, which hears broker 2."""

    leader: int = TWO
    epoch: int = 4
    controller: int = TWO
    answers: bool = True
    topic_id: UUID = WAVES
    asked: list[list[str | None]] = field(default_factory=list)
    up: Mapping[NodeId, int] = field(default_factory=lambda: {THREE: 1})

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        assert node == THREE
        assert isinstance(request, AskRequest)
        asked = decode(MetadataRequest, request.api_version, request.body)
        assert not asked.allow_auto_topic_creation
        assert asked.topics is not None, "that would be all topics"
        self.asked.append([topic.name for topic in asked.topics])
        if not self.answers:
            await trio.sleep_forever()
        partition = MetadataResponsePartition(
            partition_index=0,
            leader_id=self.leader,
            leader_epoch=self.epoch,
            replica_nodes=[1, 2, 3],
            isr_nodes=[2, 3],
        )
        topic = MetadataResponseTopic(name="waves", topic_id=self.topic_id, partitions=[partition])
        answer = MetadataResponse(
            brokers=[], cluster_id="c", controller_id=self.controller, topics=[topic]
        )
        response = AskResponse(body=encode(answer, request.api_version))
        assert isinstance(response, answer_type)
        return response


def elsewhere(third: Third, *, silent: float = 60.0) -> LeadersElsewhere:
    state = three()
    liveness = FakeLiveness(alive={THREE}, silent=silent)
    return LeadersElsewhere(Brokers(ME, lambda: state, liveness), third)


async def test_the_others_are_asked_once_a_second_about_a_topic(autojump_clock: MockClock) -> None:
    del autojump_clock
    third = Third()
    known = elsewhere(third)
    for _ in range(3):
        await known.ask(["waves"])
    await known.ask(["waves", "tides"])
    assert third.asked == [["waves"], ["tides"]]
    assert known.leader_of(PartitionKey(WAVES, 0)) == (TWO, 4)
    assert known.controller == TWO
    await trio.sleep(1)
    third.epoch = 5
    await known.ask(["waves"])
    assert third.asked[2:] == [["waves"]]
    assert known.leader_of(PartitionKey(WAVES, 0)) == (TWO, 5)


async def test_the_controller_is_asked_for_by_itself(autojump_clock: MockClock) -> None:
    del autojump_clock
    third = Third()
    known = elsewhere(third)
    await known.ask([])
    await known.ask([])
    assert (third.asked, known.controller) == ([[]], TWO)


async def test_while_a_leader_may_be_about_to_be_elected_nobody_is_asked() -> None:
    third = Third()
    known = elsewhere(third, silent=0.9)
    await known.ask(["waves"])
    assert third.asked == []
    assert not known.knows_some


async def test_what_was_learned_is_forgotten_once_another_broker_falls_silent() -> None:
    third, liveness, state = Third(), FakeLiveness(alive={THREE}, silent=60.0), three()
    known = LeadersElsewhere(Brokers(ME, lambda: state, liveness), third)
    await known.ask(["waves"])
    liveness.silent = 0.1
    await known.ask(["waves"])
    assert not known.knows_some


async def test_who_does_not_answer_is_waited_for_half_a_second(autojump_clock: MockClock) -> None:
    del autojump_clock
    began = trio.current_time()
    known = elsewhere(Third(answers=False))
    await known.ask(["waves"])
    assert trio.current_time() - began == 0.5
    assert known.leader_of(PartitionKey(WAVES, 0)) is None


async def test_nobody_learns_that_it_leads_itself_or_of_brokers_that_it_does_not_know() -> None:
    for other in (ME, NodeId(9), NodeId(-1)):
        known = elsewhere(Third(leader=other, controller=other))
        await known.ask(["waves"])
        assert not known.knows_some


async def test_an_answer_that_says_no_is_passed_over() -> None:
    class Older(Third):
        async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION)

    known = elsewhere(Older())
    await known.ask(["waves"])
    assert not known.knows_some


@asynccontextmanager
async def waves_here(folder: Path, third: Third) -> AsyncIterator[Node]:
    """Broker 1, which has the topic, hears broker 3 and not broker 2, and knows of no leader."""
    async with open_node(folder) as alone:
        await alone.topics.create(NewTopic(name="waves", partitions=1))
        state, liveness = three(), FakeLiveness(alive={THREE}, silent=60.0)
        topic = alone.topics.get("waves")
        assert topic is not None
        third.topic_id = topic.id
        yield replace(alone, brokers=Brokers(ME, lambda: state, liveness), calls=third)


async def described(
    node: Node, *, asked_by: RequestContext
) -> tuple[MetadataResponse, MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="waves")])
    answer = await metadata.handle(node, request, asked_by)
    ((partition,),) = (topic.partitions for topic in answer.topics)
    return answer, partition


async def test_a_client_is_told_what_another_broker_knows(tmp_path: Path) -> None:
    async with waves_here(tmp_path, Third()) as node:
        answer, partition = await described(node, asked_by=context(12))
        assert (partition.leader_id, partition.leader_epoch) == (TWO, 4)
        assert [broker.node_id for broker in answer.brokers] == [ME, TWO, THREE]
        assert answer.controller_id == TWO


async def test_a_leader_of_an_older_epoch_is_none(tmp_path: Path) -> None:
    async with waves_here(tmp_path, Third(epoch=-1)) as node:
        _, partition = await described(node, asked_by=context(12))
        assert partition.leader_id == -1


async def test_who_is_asked_by_another_broker_asks_no_third(tmp_path: Path) -> None:
    third, session = Third(), replace(context(12).session, connection_id=NO_CONNECTION)
    async with waves_here(tmp_path, third) as node:
        asked_by = RequestContext(api_version=12, client_id="broker-3", session=session)
        _, partition = await described(node, asked_by=asked_by)
        assert (partition.leader_id, third.asked) == (-1, [])
