"""How far moves of replicas are: rows to be printed, and the waiting for their end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from tidemark.cli.output import Column, Json
from tidemark.cli.waiting import live_table
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import NodeId, Offset, TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Client
    from tidemark.client.replica_descriptions import (
        OngoingReassignment,
        PartitionReplicas,
        ReassignmentProgress,
    )

_LOOK_SECONDS: Final = 0.25

STATUS_COLUMNS: Final = (
    Column("topic"),
    Column("partition"),
    Column("replicas"),
    Column("adding"),
    Column("removing"),
    Column("stage"),
    Column("copying_to"),
    Column("copied_bytes", heading="copied"),
    Column("remaining_bytes", heading="remaining"),
    Column("bytes_per_second", heading="bytes/s"),
    Column("left"),
    Column("why"),
)


REPLICA_COLUMNS: Final = (
    Column("topic"),
    Column("partition"),
    Column("broker"),
    Column("role"),
    Column("leader"),
    Column("up"),
    Column("end_offset"),
    Column("lag"),
    Column("stale_ms"),
    Column("pulls_from", wide=True),
)


class Move(NamedTuple):
    """One partition whose replicas are being moved; `progress` if its leader told."""

    at: TopicPartition
    ongoing: OngoingReassignment
    progress: ReassignmentProgress | None


async def look(client: Client, partitions: Collection[TopicPartition] | None) -> list[Move]:
    """The moves under way, of these partitions or of all."""
    ongoing = await client.admin.list_reassignments(partitions)
    described: Mapping[TopicPartition, PartitionReplicas] = {}
    if ongoing:
        try:
            described = await client.admin.describe_replicas(ongoing)
        except RequestError as error:
            # Kafka's brokers do not tell, and of a partition that has just gone there is nothing.
            if error.code not in (
                ErrorCode.UNSUPPORTED_VERSION,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ):
                raise
    return [
        Move(at, each, described[at].reassignment if at in described else None)
        for at, each in ongoing.items()
    ]


def move_rows(moves: Collection[Move]) -> list[dict[str, Json]]:
    return [_move_row(*move) for move in moves]


def _move_row(
    at: TopicPartition, ongoing: OngoingReassignment, progress: ReassignmentProgress | None
) -> dict[str, Json]:
    row: dict[str, Json] = {
        "topic": at.topic,
        "partition": at.partition,
        "replicas": list(ongoing.wanted),
        "adding": list(ongoing.adding),
        "removing": list(ongoing.removing),
    }
    if progress is None:
        return row
    seconds = progress.estimated_seconds
    return row | {
        "stage": progress.stage,
        "copying_to": progress.copying_to,
        "copied_bytes": progress.copied_bytes,
        "remaining_bytes": progress.remaining_bytes,
        "bytes_per_second": progress.bytes_per_second,
        "left": None if seconds is None else f"{seconds:.0f} s",
        "left_seconds": seconds,
        "why": progress.why or None,
    }


def replica_rows(
    described: Mapping[TopicPartition, PartitionReplicas],
) -> list[dict[str, Json]]:
    return [
        {
            "topic": at.topic,
            "partition": at.partition,
            "broker": each.node_id,
            "role": each.role,
            "leader": each.node_id == found.leader,
            "up": each.is_alive,
            "end_offset": each.end_offset,
            "lag": each.lag_records,
            "stale_ms": each.staleness_ms,
            "pulls_from": each.parent,
        }
        for at, found in described.items()
        for each in found.replicas
    ]


async def follow(
    client: Client, partitions: Collection[TopicPartition], timeout_seconds: float
) -> None:
    """Wait until none of these is being moved. Raises `TidemarkError` after that long."""
    import trio

    moves = await look(client, partitions)
    with trio.move_on_after(timeout_seconds), live_table(STATUS_COLUMNS) as show:
        while moves:
            show(move_rows(moves))
            await trio.sleep(_LOOK_SECONDS)
            moves = await look(client, partitions)
    if moves:
        raise TidemarkError(
            f"{moves[0].at} is not done within {timeout_seconds:g} s; it goes on, and `tidemark "
            "replica status` shows how far it is"
        )


async def follow_observers(
    client: Client,
    partitions: Collection[TopicPartition],
    brokers: Collection[int],
    timeout_seconds: float,
) -> None:
    """Wait until these brokers hold all that is committed now. Raises `TidemarkError` after that
    long."""
    import trio

    described = await client.admin.describe_replicas(partitions)
    wanted = {at: found.high_watermark for at, found in described.items()}
    behind = _behind(described, brokers, wanted)
    with trio.move_on_after(timeout_seconds), live_table(REPLICA_COLUMNS) as show:
        while behind:
            show(replica_rows(described))
            await trio.sleep(_LOOK_SECONDS)
            described = await client.admin.describe_replicas(partitions)
            behind = _behind(described, brokers, wanted)
    if behind:
        at, node = behind[0]
        raise TidemarkError(
            f"broker {node} is behind in {at} after {timeout_seconds:g} s; it goes on, and "
            f"`tidemark replica list {at.topic}` shows how far it is"
        )


def _behind(
    described: Mapping[TopicPartition, PartitionReplicas],
    brokers: Collection[int],
    wanted: dict[TopicPartition, Offset | None],
) -> list[tuple[TopicPartition, int]]:
    """Whoever of `brokers` does not hold all below the offset that is `wanted` of a partition.

    Where the leader had none to tell, it is what it tells now.
    """
    behind = []
    for at, found in described.items():
        wanted[at] = end = found.high_watermark if wanted.get(at) is None else wanted[at]
        ends = {each.node_id: each.end_offset for each in found.replicas}
        for node in brokers:
            held = ends.get(NodeId(node))
            if end is None or held is None or held < end:
                behind.append((at, node))
    return behind
