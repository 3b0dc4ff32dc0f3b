"""What administrators and members do with groups beside reading: two client libraries."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import MemberToRemove, OffsetSpec
from kafka.errors import GroupSubscribedToTopicError, NoError, UnknownMemberIdError
from kafka.structs import TopicPartition

from tests.clients.consumer_protocol import PARTITIONS, Reader, share, wait_for
from tests.clients.kafka_python import admin
from tests.clients.librdkafka import create, produce

COOPERATIVE = {
    "group.protocol": "classic",
    "partition.assignment.strategy": "cooperative-sticky",
    "heartbeat.interval.ms": 200,
    "session.timeout.ms": 6_000,
}


def test_members_that_cooperate_give_up_only_what_must_move(
    bootstrap: str, topic: str, group: str
) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    with Reader(bootstrap, group, [topic], **COOPERATIVE) as first:
        share(topic, first)
        with Reader(bootstrap, group, [topic], **COOPERATIVE) as second:
            share(topic, first, second)
            assert first.moves == PARTITIONS // 2
        share(topic, first)
        assert first.moves == PARTITIONS // 2


def test_special_offsets(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    at = TopicPartition(topic, 0)
    with admin(bootstrap) as client:
        found = {spec: client.list_partition_offsets({at: spec})[at].offset for spec in OffsetSpec}
    assert found[OffsetSpec.EARLIEST] == found[OffsetSpec.EARLIEST_LOCAL] == 0
    assert found[OffsetSpec.LATEST] == 3
    assert found[OffsetSpec.LATEST_TIERED] == -1, "nothing is tiered"
    assert found[OffsetSpec.MAX_TIMESTAMP] in (0, 1, 2)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_group_with_members_and_without(
    bootstrap: str, topic: str, group: str, protocol: str
) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    at = TopicPartition(topic, 0)
    confluent = AdminClient({"bootstrap.servers": bootstrap})

    def members() -> int:
        return len(confluent.describe_consumer_groups([group])[group].result(10).members)

    with admin(bootstrap) as client:
        with Reader(bootstrap, group, [topic], **COOPERATIVE if protocol == "classic" else {}) as r:
            share(topic, r)
            assert members() == 1
            kinds = {
                each.type.name
                for each in confluent.list_consumer_groups().result(10).valid
                if each.group_id == group
            }
            assert kinds == {protocol.upper()}
            assert client.delete_group_offsets(group, [at]) == {at: GroupSubscribedToTopicError}
            reset = client.reset_group_offsets(group, {at: OffsetSpec.EARLIEST})
            assert reset[at]["error"] is UnknownMemberIdError
            with pytest.raises(KafkaException, match="group is not empty"):
                confluent.delete_consumer_groups([group])[group].result(10)
        wait_for(lambda: members() == 0)
        reset = client.reset_group_offsets(group, {at: OffsetSpec.LATEST})
        assert reset[at] == {"error": NoError, "offset": 3}
        assert client.list_group_offsets(group)[group][at].offset == 3
        assert client.delete_group_offsets(group, [at]) == {at: NoError}
        assert at not in client.list_group_offsets(group)[group]
    confluent.delete_consumer_groups([group])[group].result(10)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_removed_by_its_instance(
    bootstrap: str, topic: str, group: str, protocol: str
) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    settings = COOPERATIVE if protocol == "classic" else {}
    with Reader(bootstrap, group, [topic], **settings, **{"group.instance.id": "one"}) as first:
        share(topic, first)
    with Reader(bootstrap, group, [topic], **settings) as second:
        with admin(bootstrap) as client:
            client.remove_group_members(group, [MemberToRemove(group_instance_id="one")])
        share(topic, second)
