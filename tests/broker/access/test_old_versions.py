"""What is refused is said in every version, and not by closing the connection."""

import pytest

from tests.broker.access.asked import CASES, Case, build, codes
from tests.broker.access.conftest import Guarded
from tests.protocol.values import versions_of
from tidemark.broker.network.error_responses import error_response
from tidemark.protocol.codec import encode
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.elect_leaders import ElectLeadersRequest
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidemark.protocol.registry import APIS

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_refusal_can_be_said_in_each_version(guard: Guarded, case: Case) -> None:
    await guard.create("there")
    api, request = APIS[case.key], case.request("there")
    for version in range(api.spoken_min_version, api.max_version + 1):
        try:
            encode(request, version)
        except MalformedMessage:
            continue  # A request of other fields.
        try:
            await guard.ask("alice", request, version)
        except RequestError as error:
            answer = error_response(api.response, error)
            assert answer is not None
            assert encode(answer, version)


async def test_an_election_is_refused_where_there_is_no_error_for_all(guard: Guarded) -> None:
    topics = [{"topic": "t", "partitions": [0, 1]}]
    asked = build(ElectLeadersRequest, {"topic_partitions": topics, "timeout_ms": 1_000})
    answer = await guard.ask("alice", asked, 0)
    assert codes(answer) == [0, *[ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2]
    (_, *found) = codes(await guard.ask("admin", asked, 0))
    assert found == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


@pytest.mark.parametrize("version", [10, 11])
async def test_where_metadata_is_not_told_by_id_nobody_is_refused_by_id(
    guard: Guarded, version: int
) -> None:
    await guard.create("hidden")
    topic = guard.node.topics.get("hidden")
    assert topic is not None
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic.id)])
    (answer,) = (await guard.ask("alice", asked, version)).topics
    assert (answer.error_code, answer.name) == (ErrorCode.INVALID_REQUEST, "")


@pytest.mark.parametrize("version", versions_of(MetadataRequest))
async def test_who_may_not_make_a_topic_does_not_by_asking_for_it(
    guard: Guarded, version: int
) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="wished")], allow_auto_topic_creation=True
    )
    (answer,) = (await guard.ask("alice", asked, version)).topics
    assert answer.error_code == REFUSED
    assert guard.node.topics.get("wished") is None
    await guard.ask("admin", asked, version)
    assert guard.node.topics.get("wished") is not None
