"""From what a client asked for to the command that does it; the broker fills in what is open."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.state_machines import topic_names
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import CreatePartitions, CreateTopic
from tidemark.partitions.state_machines.cluster_machine import METADATA_TOPICS
from tidemark.partitions.state_machines.cluster_topics import check_partition_count
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerMetadata,
    TopicMetadata,
)
from tidemark.partitions.state_machines.placement import Candidate, Draw, place
from tidemark.partitions.state_machines.throttle_configs import check_throttled_replicas
from tidemark.partitions.state_machines.topic_names import (
    resolve_partitions,
    resolve_replication_factor,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """What decides where new partitions go, beside the state of the cluster."""

    is_alive: Callable[[NodeId], bool]
    draw: Draw


def creation(
    wanted: NewTopic,
    settings: BrokerSettings,
    state: ClusterState,
    placing: Placing,
    *,
    now_ms: int,
) -> CreateTopic:
    """Raises `RequestError` for numbers of partitions or replicas that cannot be had (trap M9), for
    a name of the metadata's log, which is no topic, and for lists of throttled replicas that are
    none."""
    if wanted.name in METADATA_TOPICS:
        raise RequestError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{wanted.name} is the log of the cluster's metadata: choose another name",
        )
    check_throttled_replicas(wanted.configs)
    wanted = _as_the_brokers_own(wanted, settings, brokers=len(state.brokers))
    return CreateTopic(
        at_version=state.version,
        name=wanted.name,
        id=uuid4(),
        assignments=wanted.assignments or _placed(wanted, settings, state, placing),
        configs=dict(wanted.configs),
        created_ms=now_ms,
    )


def growth(
    topic: TopicMetadata,
    count: int,
    assignments: Sequence[Assignment] | None,
    state: ClusterState,
    placing: Placing,
    *,
    partitions_max: int,
) -> CreatePartitions:
    """Partitions to be added until there are `count`. Raises `RequestError` if that cannot be."""
    added = count - topic.partitions
    if added < 1:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"{topic.name} has {topic.partitions} partitions: the number can only grow",
        )
    check_partition_count(count)
    if assignments is None:
        _check_room(added * topic.replication_factor, partitions_max, state)
        assignments = place(
            _candidates(state.brokers, placing),
            partitions=added,
            replicas=topic.replication_factor,
            load=state.load,
            existing=topic.assignments,
            draw=placing.draw,
        )
    elif len(assignments) != added:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(assignments)} assignments for {added} new partitions",
        )
    return CreatePartitions(
        at_version=state.version, id=topic.id, assignments=tuple(map(tuple, assignments))
    )


def metadata_of(command: CreateTopic) -> TopicMetadata:
    """The topic that the command makes."""
    return TopicMetadata(
        name=command.name,
        id=command.id,
        assignments=command.assignments,
        configs=command.configs,
        created_ms=command.created_ms,
    )


def _placed(
    wanted: NewTopic, settings: BrokerSettings, state: ClusterState, placing: Placing
) -> tuple[Assignment, ...]:
    replicas = resolve_replication_factor(
        wanted.replication_factor,
        default=settings.default_replication_factor,
        brokers=len(state.brokers),
    )
    partitions = resolve_partitions(wanted.partitions, default=settings.num_partitions)
    check_partition_count(partitions)
    if wanted.name not in topic_names.INTERNAL_TOPICS:
        _check_room(partitions * replicas, settings.partitions_max, state)
    return place(
        _candidates(state.brokers, placing),
        partitions=partitions,
        replicas=replicas,
        load=state.load,
        draw=placing.draw,
    )


def _check_room(added: int, partitions_max: int, state: ClusterState) -> None:
    """Raises `RequestError` POLICY_VIOLATION if these replicas are too many wherever they go: to
    place a hundred thousand partitions takes seconds."""
    held = sum(state.load.replicas.values())
    if held + added > partitions_max * len(state.brokers):
        raise RequestError(
            ErrorCode.POLICY_VIOLATION,
            f"the cluster holds {held} replicas, and {added} more would be over partitions.max, "
            f"{partitions_max} for each broker: raise it, delete topics, or add brokers",
        )


def _candidates(brokers: Mapping[NodeId, BrokerMetadata], placing: Placing) -> list[Candidate]:
    return [
        Candidate(node_id=node_id, rack=broker.rack, is_alive=placing.is_alive(node_id))
        for node_id, broker in brokers.items()
    ]


def _as_the_brokers_own(wanted: NewTopic, settings: BrokerSettings, *, brokers: int) -> NewTopic:
    """The broker's own topics are as the broker's settings say, whoever asks for one first.

    A cluster that has fewer brokers than they are to have replicas must be usable all the same.
    """
    match wanted.name:
        case topic_names.CONSUMER_OFFSETS:
            partitions = settings.offsets_topic_num_partitions
            replicas = settings.offsets_topic_replication_factor
            segment_bytes = settings.offsets_topic_segment_bytes
        case topic_names.TRANSACTION_STATE:
            partitions = settings.transaction_state_log_num_partitions
            replicas = settings.transaction_state_log_replication_factor
            segment_bytes = settings.transaction_state_log_segment_bytes
        case _:
            return wanted
    return replace(
        wanted,
        partitions=partitions,
        replication_factor=min(replicas, brokers),
        assignments=None,
        configs={"cleanup.policy": "compact", "segment.bytes": str(segment_bytes)},
    )
