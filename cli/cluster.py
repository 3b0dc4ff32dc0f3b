"""`tidemark cluster`: the cluster as a whole."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import click
import trio

from tidemark.cli.health import HEALTHY, ClusterFacts
from tidemark.cli.lookup import unless_unsupported
from tidemark.cli.output import Column, Form, Section, output_option, print_sections
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs
from tidemark.client import (
    Admin,
    Client,
    ClusterDescription,
    GroupListing,
    LogDirDescription,
    PartitionReplicas,
    QuorumDescription,
    RequestError,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.types import NodeId

UNHEALTHY: Final = 3
"""The exit status where the cluster answers and something is the matter with it."""
_PATIENCE_SECONDS: Final = 5.0

_BROKERS: Final = (
    Column("node_id"),
    Column("address"),
    Column("rack"),
    Column("up"),
    Column("controller"),
    Column("leaders"),
    Column("replicas"),
    Column("lag"),
    Column("free_bytes"),
    Column("trouble"),
)
_PARTITIONS: Final = (
    Column("topic"),
    Column("partition"),
    Column("leader"),
    Column("epoch"),
    Column("replicas"),
    Column("in_sync"),
    Column("high_watermark"),
    Column("lag"),
    Column("observers", wide=True),
    Column("trouble"),
)


@click.group(cls=Verbs)
def cluster() -> None:
    """Look at the cluster as a whole."""


@cluster.command()
@output_option
@talks_to_brokers
@click.pass_obj
@click.pass_context
def status(ctx: click.Context, session: Session, form: Form) -> None:
    """Show how the cluster is: its brokers, and the partitions that are in trouble.

    `-o wide` shows all partitions. LAG is how many offsets a replica's log ends before its
    leader's; a broker's is that of its slowest replica. Kafka's brokers do not tell it. OBSERVERS
    is how stale each is, in milliseconds; they never count as replicas. FREE-BYTES is how much is
    free on the disk of a broker's data directory.

    The exit status is 0 if the cluster is healthy, 3 if a broker is down, its disk full or a
    partition without a leader, below its `min.insync.replicas` or under-replicated, and 1 if nobody
    answers.
    """
    facts = session.run(gather)
    summary, brokers, partitions = (
        facts.summary(),
        facts.broker_rows(),
        facts.partition_rows(),
    )
    metadata = facts.metadata_row()
    troubled = [row for row in partitions if row["trouble"] is not None]
    has_observers = any(row["observers"] for row in partitions)
    columns = [each for each in _PARTITIONS if has_observers or each.key != "observers"]
    shown = {key.replace("_", "-"): value for key, value in summary.items()}
    print_sections(
        {**summary, "metadata": metadata, "brokers": brokers, "partitions": partitions},
        {**shown, "metadata-voters": metadata and metadata["voters"]},
        [
            Section(title="brokers", rows=brokers, columns=_BROKERS),
            Section(title="partitions", rows=partitions, columns=columns)
            if form is Form.WIDE
            else Section(title="partitions in trouble", rows=troubled, columns=columns),
        ],
        form,
    )
    if facts.verdict() != HEALTHY:
        ctx.exit(UNHEALTHY)


async def gather(client: Client) -> ClusterFacts:
    """Ask for everything. What brokers in trouble do not say in time is left out."""
    admin = client.admin
    description = await admin.describe_cluster(fenced=True)
    topics = await admin.list_topics(internal=True)
    led: dict[NodeId, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader is not None:
                at = TopicPartition(topic.name, partition.partition)
                led.setdefault(partition.leader, []).append(at)
    found: dict[str, Any] = {}  # the fields of ClusterFacts, by name

    async def ask(field: str, answer: Callable[[], Awaitable[object]]) -> None:
        found[field] = await answer()

    # Those that do not answer are waited for together, not one after the other.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "groups", partial(_groups, admin))
        nursery.start_soon(ask, "quorums", partial(quorums, admin, led))
        nursery.start_soon(ask, "metadata", partial(_metadata, admin))
        nursery.start_soon(ask, "min_in_sync", partial(_min_in_sync, admin, topics))
        nursery.start_soon(ask, "replicas", partial(_replicas, admin, topics))
        nursery.start_soon(ask, "disks", partial(_disks, admin, description))
    return ClusterFacts(description=description, topics=topics, **found)


async def quorums(
    admin: Admin, led: dict[NodeId, list[TopicPartition]]
) -> dict[TopicPartition, QuorumDescription]:
    """How far the replicas are, from each leader that says so; all are asked at once."""
    found: dict[TopicPartition, QuorumDescription] = {}

    async def ask(leader: NodeId, partitions: Collection[TopicPartition]) -> None:
        with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
            found.update(await admin.describe_quorums(leader, partitions))

    async with trio.open_nursery() as nursery:
        for leader, partitions in led.items():
            nursery.start_soon(ask, leader, partitions)
    return found


async def _min_in_sync(admin: Admin, topics: Sequence[TopicDescription]) -> dict[str, int]:
    with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
        names = [topic.name for topic in topics]
        found = await admin.describe_config("min.insync.replicas", names)
        return {topic: int(value) for topic, value in found.items()}
    return {}


async def _replicas(
    admin: Admin, topics: Sequence[TopicDescription]
) -> dict[TopicPartition, PartitionReplicas]:
    with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
        return await admin.describe_replicas(
            [TopicPartition(topic.name, p.partition) for topic in topics for p in topic.partitions]
        )
    return {}


async def _disks(admin: Admin, description: ClusterDescription) -> dict[NodeId, LogDirDescription]:
    """Of each broker that says it, the directory with the least room."""
    found: dict[NodeId, LogDirDescription] = {}

    async def ask(node_id: NodeId) -> None:
        with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
            disks = await admin.describe_log_dirs([node_id], replicas=False)
            if disks:
                found[node_id] = min(disks, key=lambda disk: (not disk.is_full, disk.usable_bytes))

    async with trio.open_nursery() as nursery:
        for broker in description.brokers:
            if not broker.is_fenced:
                nursery.start_soon(ask, broker.node_id)
    return found


async def _metadata(admin: Admin) -> QuorumDescription | None:
    with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
        return await admin.describe_metadata_quorum()
    return None


async def _groups(admin: Admin) -> list[GroupListing] | None:
    # All brokers are asked, again and again while one of them does not answer.
    with trio.move_on_after(_PATIENCE_SECONDS):
        return await unless_unsupported(admin.list_groups(), [])
    return None
