"""Members whose topics the coordinator finds for them are given none that they may not know of."""

from typing import Any
from uuid import UUID

from tests.broker.access.asked import build
from tests.broker.access.conftest import Guarded, allowed
from tests.broker.access.words import DESCRIBE, GROUP, TOPIC
from tidemark.protocol.acls import Operation
from tidemark.protocol.consumer_protocol import Subscription, decode_assignment, encode_subscription
from tidemark.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidemark.protocol.messages.join_group import JoinGroupRequest
from tidemark.protocol.messages.sync_group import SyncGroupRequest
from tidemark.protocol.types import TopicPartition

READ_GROUP = allowed(Operation.READ, GROUP, "g")


async def beat(guard: Guarded, user: str, member: str, epoch: int = 0, **said: Any) -> Any:
    """Any: fields, and the response."""
    values = {"group_id": "g", "member_id": member, "member_epoch": epoch, **said}
    if epoch == 0:
        values |= {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
    values = {"subscribed_topic_names": None, **values}
    return await guard.ask(user, build(ConsumerGroupHeartbeatRequest, values), 1)


def names(guard: Guarded, answer: Any) -> list[str]:  # Any: a response
    assert answer.error_code == 0, answer
    by_id: dict[UUID, str] = {topic.id: topic.name for topic in guard.node.topics}
    if answer.assignment is None:
        return []
    return sorted(by_id[each.topic_id] for each in answer.assignment.topic_partitions)


async def test_a_pattern_matches_what_a_client_may_know_of(guard: Guarded) -> None:
    await guard.create("hidden", "shown")
    await guard.alter(added=[READ_GROUP, allowed(DESCRIBE, TOPIC, "shown")])
    answer = await beat(guard, "alice", "m", subscribed_topic_regex=".*")
    assert names(guard, answer) == ["shown"]
    # What there is besides changes nothing, either.
    epoch = answer.member_epoch
    await guard.create("hidden-too")
    answer = await beat(guard, "alice", "m", epoch)
    assert (names(guard, answer), answer.member_epoch) == ([], epoch)


async def test_what_it_may_know_of_later_is_there_later(guard: Guarded) -> None:
    await guard.create("a", "b")
    known = allowed(DESCRIBE, TOPIC, "a")
    await guard.alter(added=[READ_GROUP, known])
    answer = await beat(guard, "alice", "m", subscribed_topic_regex=".*")
    assert names(guard, answer) == ["a"]
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "b")])
    answer = await beat(guard, "alice", "m", answer.member_epoch)
    assert names(guard, answer) == ["a", "b"]
    await guard.alter(removed=[known])
    answer = await beat(guard, "alice", "m", answer.member_epoch)
    assert names(guard, answer) == ["b"]


async def test_members_of_one_pattern_may_know_of_different_topics(guard: Guarded) -> None:
    await guard.create("a", "b")
    await guard.alter(
        added=[
            READ_GROUP,
            allowed(Operation.READ, GROUP, "g", user="bob"),
            allowed(DESCRIBE, TOPIC, "a"),
            allowed(DESCRIBE, TOPIC, "b", user="bob"),
        ]
    )
    alices = await beat(guard, "alice", "m", subscribed_topic_regex=".*")
    bobs = await beat(guard, "bob", "n", subscribed_topic_regex=".*")
    assert (names(guard, alices), names(guard, bobs)) == (["a"], ["b"])
    # Who takes the place of another sees no more than before.
    answer = await beat(guard, "alice", "n", bobs.member_epoch, topic_partitions=[])
    assert "b" not in names(guard, answer)


async def test_a_member_of_the_classic_protocol_is_assigned_what_it_may_know_of(
    guard: Guarded,
) -> None:
    await guard.create("hidden", "shown")
    await guard.alter(added=[READ_GROUP, allowed(DESCRIBE, TOPIC, "shown")])
    await beat(guard, "alice", "m", subscribed_topic_names=["shown"])
    values = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "protocol_type": "consumer",
    }

    async def joined(said: Subscription) -> Any:  # Any: the response
        protocols = [{"name": "range", "metadata": encode_subscription(said)}]
        request = build(JoinGroupRequest, {**values, "protocols": protocols})
        return await guard.ask("alice", request, 3)

    owned = frozenset({TopicPartition("hidden", 0)})
    answer = await joined(Subscription(topics=("hidden", "none"), owned=owned))
    assert answer.error_code == 0, "as if it were not there"
    member = {"member_id": answer.member_id, "generation_id": answer.generation_id}
    sync = build(SyncGroupRequest, {"group_id": "g", **member})
    synced = await guard.ask("alice", sync, 3)
    assert synced.error_code == 0
    assert list(decode_assignment(synced.assignment)) == []
