"""Who asks for all that there is is told of what it may know of."""

import pytest

from tests.broker.access.asked import build
from tests.broker.access.conftest import Guarded, allowed
from tests.broker.access.words import DESCRIBE, GROUP, TOPIC
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidemark.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidemark.protocol.messages.create_topics import CreateTopicsRequest
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.describe_groups import DescribeGroupsRequest
from tidemark.protocol.messages.describe_replicas import DescribeReplicasRequest
from tidemark.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from tidemark.protocol.messages.init_producer_id import InitProducerIdRequest
from tidemark.protocol.messages.list_groups import ListGroupsRequest
from tidemark.protocol.messages.list_transactions import ListTransactionsRequest
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidemark.protocol.messages.offset_commit import OffsetCommitRequest
from tidemark.protocol.messages.offset_fetch import OffsetFetchRequest
from tidemark.protocol.schema import ZERO_UUID

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def topics_of(guard: Guarded, user: str = "alice", version: int = 12) -> list[str]:
    answer = await guard.ask(user, MetadataRequest(topics=None), version)
    return [each.name for each in answer.topics if not each.is_internal]


async def test_topics(guard: Guarded) -> None:
    await guard.create("a", "b")
    assert await topics_of(guard) == []
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "b")])
    assert await topics_of(guard) == ["b"]
    assert await topics_of(guard, version=1) == ["b"]
    assert await topics_of(guard, "admin") == ["a", "b"]


async def test_in_the_first_version_no_topic_is_every_topic(guard: Guarded) -> None:
    await guard.create("a", "b")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "b")])
    answer = await guard.ask("alice", MetadataRequest(topics=()), 0)
    assert [each.name for each in answer.topics] == ["b"]
    hers = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    answer = await guard.ask("alice", hers, 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [("a", REFUSED)]


async def test_some_topics(guard: Guarded) -> None:
    await guard.create("a", "b")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "b")])
    asked = [MetadataRequestTopic(name=name) for name in ("a", "b")]
    answer = await guard.ask("alice", MetadataRequest(topics=asked), 12)
    assert {each.name: each.error_code for each in answer.topics} == {"a": REFUSED, "b": 0}
    assert answer.brokers


async def test_a_topic_that_is_asked_for_by_its_id_keeps_its_name(guard: Guarded) -> None:
    await guard.create("hidden")
    topic = guard.node.topics.get("hidden")
    assert topic is not None
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic.id)])
    (answer,) = (await guard.ask("alice", asked, 12)).topics
    assert (answer.error_code, answer.name, answer.topic_id) == (REFUSED, None, topic.id)
    delete = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=None, topic_id=topic.id)], topic_names=(), timeout_ms=1_000
    )
    (deleted,) = (await guard.ask("alice", delete, 6)).responses
    assert (deleted.error_code, deleted.name) == (REFUSED, None)
    assert "hidden" not in str(deleted)
    assert guard.node.topics.get("hidden") is not None


async def test_a_topic_by_its_id_is_not_to_be_known_by_the_name_of_another(
    guard: Guarded,
) -> None:
    await guard.create("hidden", "mine")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "mine")])
    await guard.alter(added=[allowed(Operation.DELETE, TOPIC, "mine")])
    topic = guard.node.topics.get("hidden")
    assert topic is not None
    for name in ("mine", "none", ""):
        both = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic.id)])
        (answer,) = (await guard.ask("alice", both, 12)).topics
        assert (answer.error_code, answer.name, answer.partitions) == (REFUSED, name, ())
        delete = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=topic.id)], topic_names=(), timeout_ms=1
        )
        (deleted,) = (await guard.ask("alice", delete, 6)).responses
        assert deleted.error_code != 0
        assert "hidden" not in str(deleted)
    assert guard.node.topics.get("hidden") is not None


async def test_by_first_use_a_topic_is_made_for_who_may_create_it(guard: Guarded) -> None:
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, name) for name in ("a", "b")])
    await guard.alter(added=[allowed(Operation.CREATE, TOPIC, "b")])
    asked = [MetadataRequestTopic(name=name) for name in ("a", "b")]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=True)
    answer = await guard.ask("alice", request, 12)
    assert {each.name: each.error_code for each in answer.topics} == {"a": REFUSED, "b": 0}
    assert guard.node.topics.get("a") is None


@pytest.mark.parametrize("limit", [1, 100])
async def test_pages_of_topics(guard: Guarded, limit: int) -> None:
    await guard.create("a", "b", "c", "d")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, name) for name in ("b", "d")])
    shown, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=(), response_partition_limit=limit, cursor=cursor
        )
        answer = await guard.ask("alice", request, 0)
        shown += [each.name for each in answer.topics]
        cursor = answer.next_cursor
        if cursor is None:
            break
        assert cursor.topic_name in ("b", "d")
    assert list(dict.fromkeys(shown)) == ["b", "d"]
    await guard.alter(removed=[allowed(DESCRIBE, TOPIC, name) for name in ("b", "d")])
    request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=limit, cursor=None)
    assert (await guard.ask("alice", request, 0)).topics == ()


async def test_replicas(guard: Guarded) -> None:
    await guard.create("a", "b")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "b")])
    answer = await guard.ask("alice", DescribeReplicasRequest(topics=None), 1)
    assert [each.topic for each in answer.topics] == ["b"]


async def commit(guard: Guarded, group: str, *topics: str) -> None:
    one = {"partition_index": 0, "committed_offset": 7}
    values = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": name, "partitions": [one]} for name in topics],
    }
    answer = await guard.ask("admin", build(OffsetCommitRequest, values), 8)
    assert [each.partitions[0].error_code for each in answer.topics] == [0] * len(topics)


async def test_groups(guard: Guarded) -> None:
    await guard.create("a")
    for name in ("g", "h"):
        await commit(guard, name, "a")

    async def groups() -> set[str]:
        answer = await guard.ask("alice", ListGroupsRequest(), 4)
        assert answer.error_code == 0
        return {each.group_id for each in answer.groups}

    assert await groups() == set()
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "h")])
    assert await groups() == {"h"}
    await guard.alter(added=[allowed(DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)])
    assert await groups() == {"g", "h"}


@pytest.mark.parametrize("version", [5, 8])
async def test_commits(guard: Guarded, version: int) -> None:
    await guard.create("a", "b")
    await commit(guard, "g", "a", "b")
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "g"), allowed(DESCRIBE, TOPIC, "b")])
    group = {"group_id": "g", "topics": None}
    values = group if version < 8 else {"groups": [group]}
    answer = await guard.ask("alice", build(OffsetFetchRequest, values), version)
    found = answer if version < 8 else answer.groups[0]
    assert found.error_code == 0
    assert [(each.name, each.partitions[0].committed_offset) for each in found.topics] == [("b", 7)]


async def test_a_group_that_is_named_again_is_answered_once(guard: Guarded) -> None:
    await guard.create("a")
    await commit(guard, "g", "a")
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "g"), allowed(DESCRIBE, TOPIC, "a")])
    groups = [{"group_id": each, "topics": None} for each in ("g", "h", "h", "g")]
    answer = await guard.ask("alice", build(OffsetFetchRequest, {"groups": groups}), 8)
    assert [(each.group_id, len(each.topics)) for each in answer.groups] == [("g", 1), ("h", 0)]


async def test_a_group_that_is_named_again_is_asked_about_topics_of_which_some_are_not_shown(
    guard: Guarded,
) -> None:
    await guard.create("a", "b")
    await commit(guard, "g", "a", "b")
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "g"), allowed(DESCRIBE, TOPIC, "b")])
    groups = [
        {"group_id": "g", "topics": [{"name": name, "partition_indexes": [0]}]} for name in "aab"
    ]
    answer = await guard.ask("alice", build(OffsetFetchRequest, {"groups": groups}), 8)
    codes = [each.topics[0].partitions[0].error_code for each in answer.groups]
    assert codes == [REFUSED, REFUSED, 0]


async def test_transactional_ids(guard: Guarded) -> None:
    for name in ("mine", "hers"):
        begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
        assert (await guard.ask("admin", begin, 4)).error_code == 0
    request = ListTransactionsRequest(state_filters=(), producer_id_filters=())
    assert (await guard.ask("alice", request, 0)).transaction_states == ()
    await guard.alter(added=[allowed(DESCRIBE, ResourceType.TRANSACTIONAL_ID, "mine")])
    answer = await guard.ask("alice", request, 0)
    assert [each.transactional_id for each in answer.transaction_states] == ["mine"]


async def test_a_group_with_a_topic_that_is_not_to_be_known(guard: Guarded) -> None:
    await guard.create("a")
    joining = build(
        ConsumerGroupHeartbeatRequest,
        {
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["a"],
            "topic_partitions": [],
        },
    )
    assert (await guard.ask("admin", joining, 0)).error_code == 0
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "g")])
    asked = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)
    (hidden,) = (await guard.ask("alice", asked, 0)).groups
    assert (hidden.error_code, hidden.members) == (REFUSED, ())
    assert "'a'" not in (hidden.error_message or "")
    await guard.alter(added=[allowed(DESCRIBE, TOPIC, "a")])
    (shown,) = (await guard.ask("alice", asked, 0)).groups
    assert (shown.error_code, len(shown.members)) == (0, 1)
    assert shown.authorized_operations == 1 << DESCRIBE


async def test_what_a_new_topic_is_like(guard: Guarded) -> None:
    await guard.alter(added=[allowed(Operation.CREATE, TOPIC, name) for name in ("a", "b")])
    await guard.alter(added=[allowed(Operation.ALTER_CONFIGS, TOPIC, "b")])
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in "abc"]
    request = build(CreateTopicsRequest, {"topics": topics, "timeout_ms": 5_000})
    a, b, c = (await guard.ask("alice", request, 7)).topics
    assert (a.error_code, a.num_partitions, a.topic_config_error_code) == (0, -1, REFUSED)
    assert a.topic_id != ZERO_UUID
    assert not a.configs
    assert (b.error_code, b.num_partitions, b.topic_config_error_code) == (0, 2, 0)
    assert b.configs
    assert (c.name, c.error_code) == ("c", REFUSED)
    assert [guard.node.topics.get(name) is not None for name in "abc"] == [True, True, False]


async def test_operations_that_are_allowed(guard: Guarded) -> None:
    await guard.node.topics.ensure(NewTopic(name="a"))
    await guard.alter(added=[allowed(Operation.READ, TOPIC, "a")])
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="a")], include_topic_authorized_operations=True
    )
    (topic,) = (await guard.ask("alice", asked, 12)).topics
    assert topic.topic_authorized_operations == 1 << Operation.READ | 1 << DESCRIBE


async def test_who_may_alter_the_configs_of_a_group_is_told_so(guard: Guarded) -> None:
    await guard.alter(added=[allowed(DESCRIBE, GROUP, "g")])
    await guard.alter(added=[allowed(Operation.ALTER_CONFIGS, GROUP, "g")])
    asked = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (group,) = (await guard.ask("alice", asked, 5)).groups
    described = 1 << DESCRIBE | 1 << Operation.DESCRIBE_CONFIGS
    assert group.authorized_operations == described | 1 << Operation.ALTER_CONFIGS
