"""A broker may be asked by an id before it has heard of the topic. What was let through then, for
there is nothing to be refused, is looked at again when there is."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.broker.access.conftest import Guarded
from tests.broker.handlers.fetching import Want, asking
from tests.broker.handlers.producing import batch, now_ms, request
from tidemark.broker.access.gate import Visitor
from tidemark.broker.access.gated import GatedHandlers
from tidemark.broker.network.requests import FrameHandler, Session
from tidemark.partitions.state_machines.cluster_commands import CreateTopic
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import ApiCodec, encode_request
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.fetch import FetchRequest
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidemark.protocol.registry import APIS, api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

VERSION = 13
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def reading(topic_id: UUID, **fields: int) -> FetchRequest:
    asked = asking(Want(topic=""), **fields)
    (topic,) = asked.topics
    return replace(asked, topics=[replace(topic, topic_id=topic_id)])


async def hear_of(guard: Guarded, topic_id: UUID) -> None:
    """What another broker's client has made."""
    node = guard.node
    await node.cluster.propose(
        lambda state: CreateTopic(
            at_version=state.version,
            name="hidden",
            id=topic_id,
            assignments=((NodeId(node.node_id),),),
            configs={},
            created_ms=now_ms(),
        )
    )
    assert node.topics.by_id(topic_id) is not None


def decoded(guard: Guarded, asked: Message, session: Session) -> None:
    """As the dispatcher does with a request that is not known."""
    handler = GatedHandlers(guard.handlers._handlers, guard.node)[api_of(type(asked)).key]
    assert isinstance(handler, FrameHandler)
    frame = memoryview(bytearray(encode_request(asked, VERSION, 1, "c")))[4:]
    codec = ApiCodec(APIS[api_of(type(asked)).key], VERSION)
    handler.decoded(frame, codec.decode_request(frame, 100)[2], session, codec)


@pytest.mark.parametrize("is_known", [True, False])
async def test_its_like_is_not_known_again(guard: Guarded, *, is_known: bool) -> None:
    topic_id = uuid4()
    if is_known:
        await hear_of(guard, topic_id)
    await guard.ask("admin", reading(topic_id), VERSION)
    session = guard.sessions["admin"]
    decoded(guard, reading(topic_id), session)
    decoded(guard, request(batch(), topic="", topic_id=topic_id), session)
    assert (session.one_fetches is not None) is is_known
    assert (session.one_batches is not None) is is_known


async def test_a_fetch_session_does_not_go_on_with_it(guard: Guarded) -> None:
    topic_id = uuid4()
    begun = await guard.ask("alice", reading(topic_id, session_id=0, session_epoch=0), VERSION)
    assert begun.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    await hear_of(guard, topic_id)
    going_on = asking(session_id=begun.session_id, session_epoch=1)
    answer = await guard.ask("alice", going_on, VERSION)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    begun = await guard.ask("alice", reading(topic_id, session_id=0, session_epoch=0), VERSION)
    assert begun.responses[0].partitions[0].error_code == REFUSED


async def test_a_handler_that_knows_more_is_not_asked(
    guard: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of the broker to which a request is passed on, or one that comes later."""
    topic_id = uuid4()
    await hear_of(guard, topic_id)
    monkeypatch.setattr(Visitor, "name_of", lambda _visitor, _id: None)
    delete = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=None, topic_id=topic_id)], topic_names=(), timeout_ms=1_000
    )
    (deleted,) = (await guard.ask("alice", delete, 6)).responses
    assert (deleted.error_code, deleted.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert guard.node.topics.by_id(topic_id) is not None
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])
    (topic,) = (await guard.ask("alice", asked, 12)).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
