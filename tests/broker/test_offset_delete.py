"""Commits of partitions that the group's coordinator does not host."""

from pathlib import Path

from tests.broker.clusters import insist, open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import offset_commit, offset_delete
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidemark.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tidemark.protocol.types import NodeId, TopicPartition


async def test_a_commit_is_deleted_wherever_its_partition_is(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 2, offsets_topic_num_partitions=1) as brokers:
        await insist(brokers[1].coordinator.ensure_topic)
        at = brokers[1].coordinator.find("readers")
        other = NodeId(3 - at)
        await brokers.create(NewTopic(name="waves", assignments=((other,),)))
        coordinator = brokers[at]
        waves = TopicPartition("waves", 0)
        await wait_until(lambda: coordinator.topics.has(waves))
        await coordinator.coordinator.wait_loaded()
        commit = OffsetCommitRequest(
            group_id="readers",
            member_id="",
            topics=[
                OffsetCommitRequestTopic(
                    name="waves",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=5, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        await ask(offset_commit.handle, coordinator, commit, 8)
        assert waves in coordinator.coordinator.committed("readers")
        delete = OffsetDeleteRequest(
            group_id="readers",
            topics=[
                OffsetDeleteRequestTopic(
                    name="waves", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        )
        answer = await ask(offset_delete.handle, coordinator, delete, 0)
        assert [each.error_code for each in answer.topics[0].partitions] == [0]
        assert waves not in coordinator.coordinator.committed("readers")
