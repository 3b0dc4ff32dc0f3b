"""A fetch session goes on for who has begun it, and until an ACL changes."""

from dataclasses import replace

from tests.broker.access.conftest import Guarded, allowed
from tests.broker.handlers.fetching import Want, asking
from tests.broker.handlers.producing import new_topic
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.protocol.acls import Operation, ResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.fetch import FetchRequest, FetchResponse

READ: Acl = allowed(Operation.READ, ResourceType.TOPIC, "t")
BY_BOB: Acl = READ._replace(principal="User:bob")


async def begun(guard: Guarded, *topics: str) -> FetchResponse:
    for name in topics:
        await new_topic(guard.node, name)
    await guard.alter(added=[READ])
    asked = asking(*(Want(topic=name) for name in topics), session_id=0, session_epoch=0)
    response = await guard.ask("alice", asked, 12)
    assert isinstance(response, FetchResponse)
    assert response.session_id
    return response


def going_on(begun: FetchResponse, *wants: Want, epoch: int = 1) -> FetchRequest:
    return asking(*wants, session_id=begun.session_id, session_epoch=epoch)


async def test_it_goes_on(guard: Guarded) -> None:
    session = await begun(guard, "t")
    for epoch in (1, 2):
        answer = await guard.ask("alice", going_on(session, epoch=epoch), 12)
        assert (answer.error_code, answer.session_id) == (0, session.session_id)


async def test_it_has_nothing_that_is_not_allowed(guard: Guarded) -> None:
    session = await begun(guard, "t", "hers")
    assert [
        (topic.topic, [each.error_code for each in topic.partitions]) for topic in session.responses
    ] == [("t", [0]), ("hers", [ErrorCode.TOPIC_AUTHORIZATION_FAILED])]
    added = await guard.ask("alice", going_on(session, Want(topic="hers")), 12)
    (topic,) = added.responses
    assert topic.topic == "hers"
    assert topic.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_when_an_acl_has_changed_the_client_says_again_what_it_wants(
    guard: Guarded,
) -> None:
    session = await begun(guard, "t")
    await guard.alter(added=[BY_BOB])
    answer = await guard.ask("alice", going_on(session), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    again = replace(asking(Want()), session_id=0, session_epoch=0)
    session = await guard.ask("alice", again, 12)
    assert (await guard.ask("alice", going_on(session), 12)).error_code == 0


async def test_nobody_goes_on_with_that_of_another(guard: Guarded) -> None:
    session = await begun(guard, "t")
    answer = await guard.ask("bob", going_on(session), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert answer.responses == ()
