"""From what a client asked for to the command that makes it; the broker fills in what is open."""

from dataclasses import replace
from uuid import uuid4

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.state_machines.cluster import TopicMetadata
from tidemark.partitions.state_machines.cluster_commands import CreateTopic
from tidemark.partitions.state_machines.topic_names import (
    CONSUMER_OFFSETS,
    resolve_partitions,
    resolve_replication_factor,
)


def creation(
    wanted: NewTopic, settings: BrokerSettings, *, at_version: int, now_ms: int
) -> CreateTopic:
    """Raises `RequestError` for numbers of partitions or replicas that cannot be had (trap M9)."""
    if wanted.name == CONSUMER_OFFSETS:
        wanted = _consumer_offsets(wanted, settings)
    resolve_replication_factor(
        wanted.replication_factor, default=settings.default_replication_factor, brokers=1
    )
    return CreateTopic(
        at_version=at_version,
        name=wanted.name,
        id=uuid4(),
        partitions=resolve_partitions(wanted.partitions, default=settings.num_partitions),
        configs=dict(wanted.configs),
        created_ms=now_ms,
    )


def metadata_of(command: CreateTopic) -> TopicMetadata:
    """The topic that the command makes."""
    return TopicMetadata(
        name=command.name,
        id=command.id,
        partitions=command.partitions,
        configs=command.configs,
        created_ms=command.created_ms,
    )


def _consumer_offsets(wanted: NewTopic, settings: BrokerSettings) -> NewTopic:
    """The broker's own topic is as the broker's settings say, whoever asks for it first."""
    return replace(
        wanted,
        partitions=settings.offsets_topic_num_partitions,
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
    )
