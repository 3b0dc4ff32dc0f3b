"""The administrative calls against a real broker."""

import pytest

from tests.client.helpers import numbered, write
from tidemark.client import (
    AtTime,
    Beginning,
    Client,
    CommittedOffset,
    ConfigSource,
    End,
    ErrorCode,
    MaxTime,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.protocol.types import NodeId, Offset


async def code_of(call: object) -> ErrorCode:
    with pytest.raises(RequestError) as caught:
        await call  # type: ignore[misc]  # any awaitable
    return caught.value.code


async def test_a_topic_is_created_described_and_deleted(client: Client, topic: str) -> None:
    created = await client.admin.create_topic(
        topic, partitions=3, replication_factor=1, configs={"retention.ms": "5000"}
    )
    assert (created.partitions, created.replication_factor) == (3, 1)
    described = await client.admin.describe_topic(topic)
    assert described.topic_id == created.topic_id
    assert [p.partition for p in described.partitions] == [0, 1, 2]
    assert all(p.leader is not None for p in described.partitions)
    assert described.replication_factor == 1
    assert described in await client.admin.list_topics()
    await client.admin.delete_topic(topic)
    assert topic not in [listed.name for listed in await client.admin.list_topics()]


async def test_refusals_carry_the_code_and_the_name(client: Client, topic: str) -> None:
    admin = client.admin
    await admin.create_topic(topic, partitions=1)
    assert await code_of(admin.create_topic(topic)) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert await code_of(admin.create_topic("no/slash")) is ErrorCode.INVALID_TOPIC_EXCEPTION
    config = {"no.such.config": "1"}
    assert await code_of(admin.create_topic("x", configs=config)) is ErrorCode.INVALID_CONFIG
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await code_of(admin.delete_topic("never-made")) is unknown
    assert await code_of(admin.describe_topic("never-made")) is unknown
    assert await code_of(admin.describe_configs("never-made")) is unknown
    with pytest.raises(RequestError, match=f"topic {topic}"):
        await admin.create_topic(topic)


async def test_a_validation_changes_nothing(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2, validate_only=True)
    assert topic not in [listed.name for listed in await client.admin.list_topics()]


async def test_topics_are_described_in_the_order_asked_for(client: Client, topic: str) -> None:
    names = [f"{topic}-{letter}" for letter in "cab"]
    for name in names:
        await client.admin.create_topic(name, partitions=1)
    assert [found.name for found in await client.admin.describe_topics(names)] == names


async def test_a_topic_grows_and_never_shrinks(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await client.admin.create_partitions(topic, 3, validate_only=True)
    await client.admin.create_partitions(topic, 2)
    assert len((await client.admin.describe_topic(topic)).partitions) == 2
    assert await code_of(client.admin.create_partitions(topic, 1)) is ErrorCode.INVALID_PARTITIONS


async def test_configs_are_changed_one_by_one(client: Client, topic: str) -> None:
    admin = client.admin
    await admin.create_topic(topic, partitions=1, configs={"segment.ms": "10000"})
    await admin.alter_configs(topic, {"retention.ms": "1000"}, append={"cleanup.policy": "compact"})
    entries = {entry.name: entry for entry in await admin.describe_configs(topic)}
    assert entries["retention.ms"].value == "1000"
    assert entries["retention.ms"].source is ConfigSource.TOPIC
    assert entries["segment.ms"].value == "10000"
    assert entries["cleanup.policy"].value == "delete,compact"
    assert entries["max.message.bytes"].is_default
    await admin.alter_configs(topic, unset=["retention.ms"], subtract={"cleanup.policy": "delete"})
    entries = {entry.name: entry for entry in await admin.describe_configs(topic)}
    assert entries["retention.ms"].is_default
    assert entries["cleanup.policy"].value == "compact"
    bad = admin.alter_configs(topic, {"retention.ms": "soon"})
    assert await code_of(bad) is ErrorCode.INVALID_CONFIG


async def test_one_config_of_many_topics_is_asked_for_at_once(client: Client, topic: str) -> None:
    admin, names = client.admin, [f"{topic}-{number}" for number in range(3)]
    for number, name in enumerate(names):
        await admin.create_topic(name, partitions=1, configs={"retention.ms": f"{number}000"})
    found = await admin.describe_config("retention.ms", [*names, "never-made"])
    assert found == {name: f"{number}000" for number, name in enumerate(names)}
    assert await admin.describe_config("retention.ms", []) == {}


async def test_configs_are_explained_on_request(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    plain = await client.admin.describe_configs(topic)
    explained = await client.admin.describe_configs(topic, documentation=True)
    assert not any(entry.documentation for entry in plain)
    assert all(entry.documentation for entry in explained)


async def test_a_broker_describes_itself(client: Client) -> None:
    cluster = await client.admin.describe_cluster()
    (broker,) = cluster.brokers
    assert cluster.controller_id == broker.node_id
    assert await client.admin.describe_broker_configs(broker.node_id)
    unknown = client.admin.describe_broker_configs(NodeId(99))
    assert await code_of(unknown) is ErrorCode.BROKER_NOT_AVAILABLE
    spoken = {api.name: api for api in await client.admin.api_versions()}
    assert spoken["Fetch"].max_version >= 12
    assert await client.admin.api_versions(broker.node_id) == list(spoken.values())


async def test_brokers_take_other_defaults_for_topics_while_they_run(client: Client) -> None:
    admin = client.admin
    (broker,) = (await admin.describe_cluster()).brokers

    async def stated(node_id: NodeId | None) -> tuple[str | None, ConfigSource]:
        entries = {e.name: e for e in await admin.describe_broker_configs(node_id)}
        entry = entries["log.retention.ms"]
        return entry.value, entry.source

    await admin.alter_broker_configs(set={"log.retention.ms": "5000"}, validate_only=True)
    assert await admin.describe_broker_configs() == []
    await admin.alter_broker_configs(set={"log.retention.ms": "5000"})
    assert await stated(None) == ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    await admin.alter_broker_configs(broker.node_id, {"log.retention.ms": "6000"})
    assert await stated(broker.node_id) == ("6000", ConfigSource.DYNAMIC_BROKER)
    await admin.alter_broker_configs(broker.node_id, unset=["log.retention.ms"])
    assert await stated(broker.node_id) == ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    await admin.alter_broker_configs(unset=["log.retention.ms"])
    assert await admin.describe_broker_configs() == []
    refused = admin.alter_broker_configs(set={"node.id": "2"})
    assert await code_of(refused) is ErrorCode.INVALID_CONFIG


async def test_a_group_has_configs_of_its_own(client: Client, group: str) -> None:
    admin, name = client.admin, "consumer.session.timeout.ms"

    async def stated() -> tuple[str | None, ConfigSource]:
        entry = next(e for e in await admin.describe_group_configs(group) if e.name == name)
        return entry.value, entry.source

    await admin.alter_group_configs(group, {name: "60000"}, validate_only=True)
    assert await stated() == ("45000", ConfigSource.DEFAULT)
    await admin.alter_group_configs(group, {name: "60000"})
    assert await stated() == ("60000", ConfigSource.GROUP)
    await admin.alter_group_configs(group, unset=[name])
    assert await stated() == ("45000", ConfigSource.DEFAULT)
    refused = admin.alter_group_configs(group, {name: "1"})
    assert await code_of(refused) is ErrorCode.INVALID_CONFIG


async def test_an_empty_client_id_is_not_all_of_a_user_s(client: Client) -> None:
    limit = client.admin.alter_quotas(user="bob", client_id="", set={"producer_byte_rate": 1.0})
    assert await code_of(limit) is ErrorCode.INVALID_REQUEST


async def test_a_leader_says_how_far_the_replicas_are(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    await write(client, topic, numbered(3), partition=1)
    ((node_id, *_),) = {p.replicas for p in (await client.admin.describe_topic(topic)).partitions}
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    found = await client.admin.describe_quorums(node_id, [*partitions, TopicPartition("none", 0)])
    assert list(found) == partitions
    quorum = found[partitions[1]]
    assert (quorum.leader, quorum.high_watermark) == (node_id, 3)
    assert [(each.node_id, each.end_offset) for each in quorum.voters] == [(node_id, 3)]
    assert quorum.lag() == {node_id: 0}


async def test_the_metadata_have_a_quorum_of_their_own(client: Client) -> None:
    quorum = await client.admin.describe_metadata_quorum()
    assert quorum is not None
    assert quorum.leader in [replica.node_id for replica in quorum.voters]


async def test_offsets_by_every_kind_of_place(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        for timestamp_ms in (100, 300, 200):
            await producer.send(topic, b"", timestamp_ms=timestamp_ms)
    here = TopicPartition(topic, 0)

    async def offset(spec: Beginning | End | AtTime | MaxTime) -> int:
        return (await client.admin.list_offsets({here: spec}))[here].offset

    assert [await offset(spec) for spec in (Beginning(), End(), AtTime(150), MaxTime())] == [
        0,
        3,
        1,
        1,
    ]
    assert await offset(AtTime(301)) == -1
    found = (await client.admin.list_offsets({here: AtTime(150)}))[here]
    assert (found.timestamp_ms, found.leader_epoch >= 0) == (300, True)


async def test_records_are_deleted_from_the_front(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    await write(client, topic, numbered(10), partition=0)
    await write(client, topic, numbered(10), partition=1)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert await client.admin.delete_records({one: 4, two: -1}) == {one: 4, two: 10}
    assert await client.admin.beginning_offsets([one, two]) == {one: 4, two: 10}
    too_far = client.admin.delete_records({one: 11})
    assert await code_of(too_far) is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_the_disks_say_what_lies_on_them(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=2)
    await write(client, topic, [bytes(1000)], partition=1)
    (disk,) = await client.admin.describe_log_dirs()
    sizes = {replica.topic_partition: replica.size_bytes for replica in disk.replicas}
    assert sizes[TopicPartition(topic, 0)] == 0
    assert sizes[TopicPartition(topic, 1)] > 1000
    assert disk.total_bytes > 0


async def test_a_group_without_members_is_an_admins_to_change(
    client: Client, topic: str, group: str
) -> None:
    admin = client.admin
    await admin.create_topic(topic, partitions=2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await admin.alter_group_offsets(
        group, {one: Offset(3), two: CommittedOffset(offset=Offset(4), metadata="why")}
    )
    offsets = await admin.list_group_offsets(group)
    assert {tp: (found.offset, found.metadata) for tp, found in offsets.items()} == {
        one: (3, None),
        two: (4, "why"),
    }
    assert list(await admin.list_group_offsets(group, [two])) == [two]
    assert group in [listed.group for listed in await admin.list_groups()]
    assert group in [listed.group for listed in await admin.list_groups(states=["Empty"])]
    assert (await admin.describe_group(group)).state == "Empty"
    nowhere = {TopicPartition(f"{topic}-gone", number): Offset(0) for number in (0, 1)}
    with pytest.raises(RequestError, match=f"{topic}-gone-0") as refused:
        await admin.alter_group_offsets(group, nowhere)
    (other,) = refused.value.__notes__
    assert f"{topic}-gone-1" in other
    await admin.delete_group_offsets(group, [one])
    assert list(await admin.list_group_offsets(group)) == [two]
    await admin.delete_group(group)
    assert await code_of(admin.describe_group(group)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert await code_of(admin.delete_group(group)) is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_group_with_members_is_described_and_left_alone(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=2)
    async with client.consumer(topic, group=group, instance_id="i") as consumer:
        await write(client, topic, [b"x"])
        await anext(consumer)
        described = await client.admin.describe_group(group)
        (member,) = described.members
        assert (described.state, described.assignor) == ("Stable", "range")
        assert member.instance_id == "i"
        assert member.assignment == (TopicPartition(topic, 0), TopicPartition(topic, 1))
        deletion = client.admin.delete_group(group)
        assert await code_of(deletion) is ErrorCode.NON_EMPTY_GROUP
        commit = client.admin.alter_group_offsets(group, {TopicPartition(topic, 0): Offset(0)})
        assert await code_of(commit) is ErrorCode.NON_EMPTY_GROUP
        with pytest.raises(RequestError, match=f"SUBSCRIBED_TO_TOPIC: {topic}-0") as refused:
            await client.admin.delete_group_offsets(group, member.assignment)
        (other,) = refused.value.__notes__
        assert f"{topic}-1" in other


async def test_a_bootstrap_that_cannot_be_reached_is_one_line_that_names_it() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1") as caught:
        async with open_client("127.0.0.1:1,[::1]:1"):
            pass
    assert str(caught.value) == (
        "cannot connect to 127.0.0.1:1: Connection refused; "
        "cannot connect to [::1]:1: Connection refused"
    )
