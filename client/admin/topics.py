"""Topics: create, delete, list, describe, grow, trim."""

from collections.abc import Mapping, Sequence
from typing import Final

from tidemark.client.admin.calls import Calls
from tidemark.client.cluster import ClusterView
from tidemark.client.codes import check, failed, only
from tidemark.client.connection import Connection
from tidemark.client.descriptions import CreatedTopic, TopicDescription
from tidemark.client.limits import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    require_by_partition,
    require_configs,
    require_topic,
    require_whole,
)
from tidemark.client.lookups import ask_leaders, by_topic
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tidemark.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tidemark.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidemark.protocol.types import Offset, TopicPartition

TIMEOUT_MS: Final = 30_000
"""How long a broker may take for a change before it answers that it timed out."""
_WHY_NOT_DELETED: Final[Mapping[int, str]] = {
    ErrorCode.POLICY_VIOLATION: "a topic that is only compacted keeps the latest record of each key"
    " (delete one by a record without a value, or set cleanup.policy to compact,delete)",
}


class TopicAdmin(Calls):
    """The calls about topics."""

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
        assignments: Sequence[Sequence[int]] = (),
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create a topic; -1 asks for the broker's default. Waits until metadata shows it.

        `assignments` names the brokers of each partition, the preferred leader first; then the two
        numbers are left out.
        """
        require_topic(name)
        require_whole("partitions", partitions, least=-1)
        require_whole("replication_factor", replication_factor, least=-1, most=INT16_MAX)
        require_configs(configs or {})
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=partition, broker_ids=tuple(brokers))
                for partition, brokers in enumerate(assignments)
            ],
            configs=[
                CreatableTopicConfig(name=config, value=value)
                for config, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only
        )

        async def ask(connection: Connection) -> CreatedTopic:
            has_default = not assignments and -1 in (partitions, replication_factor)
            if connection.version(CreateTopicsRequest) < 4 and has_default:
                check(
                    ErrorCode.UNSUPPORTED_VERSION,
                    "the broker has no defaults: say how many partitions and replicas",
                )
            answer = await connection.request(request, CreateTopicsResponse)
            created = only(answer.topics, f"topic {name}")
            check(created.error_code, f"topic {name}", created.error_message)
            return CreatedTopic(
                name=name,
                topic_id=created.topic_id,
                partitions=created.num_partitions,
                replication_factor=created.replication_factor,
                configs={config.name: config.value for config in created.configs or ()},
            )

        created = await self._on_controller(ask)
        if not validate_only:
            self._network.forget(name)
            await self._network.topic(name)
        return created

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with its records."""
        require_topic(name)

        async def ask(connection: Connection) -> None:
            if connection.version(DeleteTopicsRequest) >= 6:
                request = DeleteTopicsRequest(
                    topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS
                )
            else:
                request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
            answer = await connection.request(request, DeleteTopicsResponse)
            deleted = only(answer.responses, f"topic {name}")
            check(deleted.error_code, f"topic {name}", deleted.error_message)

        await self._on_controller(ask)
        self._network.forget(name)

    async def list_topics(self, *, internal: bool = False) -> list[TopicDescription]:
        """All topics by name; those the cluster keeps for itself only with `internal`."""

        async def ask() -> list[TopicDescription]:
            view = ClusterView().updated(await self._network.ask_metadata(None, may_create=False))
            return [
                topic
                for _, topic in sorted(view.topics.items())
                if internal or not topic.is_internal
            ]

        return await self._network.retrying(ask)

    async def describe_topic(self, name: str) -> TopicDescription:
        """One topic; UNKNOWN_TOPIC_OR_PARTITION if there is none of that name."""
        (topic,) = await self.describe_topics([name])
        return topic

    async def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """These topics, in the order asked for."""
        if isinstance(names, str):
            raise TypeError(f"the names of topics are a list, as [{names!r}]")
        for name in names:
            require_topic(name)

        async def ask() -> list[TopicDescription]:
            view = ClusterView().updated(await self._network.ask_metadata(names, may_create=False))
            for name in names:
                if name not in view.topics:
                    code = view.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    raise failed(code, f"topic {name}")
            return [view.topics[name] for name in names]

        return await self._network.retrying(ask, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,))

    async def create_partitions(
        self, name: str, total: int, *, validate_only: bool = False
    ) -> None:
        """Grow a topic to `total` partitions. Keyed records go elsewhere from then on."""
        require_topic(name)
        require_whole("total", total, least=-INT32_MAX)  # none below 1 is, as brokers say
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=total, assignments=None)],
            timeout_ms=TIMEOUT_MS,
            validate_only=validate_only,
        )

        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, CreatePartitionsResponse)
            grown = only(answer.results, f"topic {name}")
            check(grown.error_code, f"topic {name}", grown.error_message)

        await self._on_controller(ask)
        if not validate_only:
            await self._network.refresh([name])

    async def delete_records(
        self, ends: Mapping[TopicPartition, Offset | int]
    ) -> dict[TopicPartition, Offset]:
        """Delete what lies below these offsets (-1: below the high watermark).

        Gives back the log starts there are then.
        """
        require_by_partition("offsets", ends, "42")
        for end in ends.values():
            require_whole("an offset", end, least=-1, most=INT64_MAX)

        async def ask(
            connection: Connection, partitions: Sequence[TopicPartition]
        ) -> dict[TopicPartition, Offset | RequestError]:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=index, offset=ends[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            answer = await connection.request(
                DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS), DeleteRecordsResponse
            )
            return {
                TopicPartition(topic.name, partition.partition_index): Offset(
                    partition.low_watermark
                )
                if partition.error_code == 0
                else failed(
                    partition.error_code,
                    f"{topic.name}-{partition.partition_index}",
                    _WHY_NOT_DELETED.get(partition.error_code),
                )
                for topic in answer.topics
                for partition in topic.partitions
            }

        return await ask_leaders(self._network, ends, ask)
