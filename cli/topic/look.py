"""Describe topics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from tidemark.cli.arguments import Name
from tidemark.cli.configs import config_row, config_section
from tidemark.cli.durability import describe_durability
from tidemark.cli.formats.times import strftime
from tidemark.cli.lookup import Extent, extents, partitions_of, unless_unsupported
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    output_option,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.topic.listing import topic_id
from tidemark.client import (
    Client,
    CompactionProgress,
    ConfigEntry,
    PartitionReplicas,
    ReplicaStanding,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.types import NodeId

_PARTITIONS = (
    Column("partition"),
    Column("leader"),
    Column("epoch"),
    Column("replicas"),
    Column("in_sync"),
    Column("offline", wide=True),
    Column("start"),
    Column("high_watermark"),
)
_OBSERVERS = (
    Column("partition"),
    Column("broker"),
    Column("up"),
    Column("end", wide=True),
    Column("lag"),
    Column("staleness_ms"),
    Column("pulls_from"),
)
_COMPACTIONS = (
    Column("partition"),
    Column("dirty_ratio"),
    Column("last_run"),
    Column("set_aside"),
)


@click.command()
@click.argument("name", type=Name(), metavar="TOPIC")
@output_option
@talks_to_brokers
@click.pass_obj
def describe(session: Session, name: str, form: Form) -> None:
    """Show a topic's durability, partitions and configs."""
    facts = session.run(lambda client: _gather(client, name))
    description, configs = facts.description, facts.configs
    partitions = _partitions(facts)
    observers = [_observer(at, each) for at, each in facts.observers()]
    compactions = [_compaction(at, each) for at, each in facts.compactions()]
    durability = describe_durability({entry.name: entry.value for entry in configs})
    everything: dict[str, Json] = {
        "name": name,
        "topic_id": topic_id(description),
        "internal": description.is_internal,
        "replicas": facts.replication_factor,
        "durability": durability,
        "partitions": partitions,
        "observers": observers,
        "compaction": compactions,
        "configs": [config_row(entry) for entry in configs],
    }
    summary: dict[str, Json] = {
        "topic": name,
        "partitions": len(partitions),
        "replicas": facts.replication_factor,
        "durability": f"a record is {durability}",
    }
    sections = [_partition_section(partitions)]
    if observers:
        sections.append(Section(title="observers", rows=observers, columns=_OBSERVERS))
    if compactions:
        sections.append(Section(title="compaction", rows=compactions, columns=_COMPACTIONS))
    sections.append(config_section(configs, form, with_source=False))
    print_sections(everything, summary, sections, form)


def _partitions(facts: "_Facts") -> list[dict[str, Json]]:
    description, logs, voters = facts.description, facts.extents, facts.voters()
    return [
        {
            "partition": p.partition,
            "leader": p.leader,
            "epoch": p.leader_epoch,
            "replicas": voters[p.partition],
            "in_sync": p.in_sync,
            "offline": p.offline,
            "start": logs[at].start
            if (at := TopicPartition(description.name, p.partition)) in logs
            else None,
            "high_watermark": logs[at].end if at in logs else None,
            "error": p.error.name if p.error else None,
        }
        for p in description.partitions
    ]


def _partition_section(partitions: Sequence[dict[str, Json]]) -> Section:
    has_errors = any(each["error"] for each in partitions)
    return Section(
        title="partitions",
        rows=partitions,
        columns=[*_PARTITIONS, Column("error")] if has_errors else _PARTITIONS,
    )


def _observer(at: TopicPartition, observer: ReplicaStanding) -> dict[str, Json]:
    return {
        "partition": at.partition,
        "broker": observer.node_id,
        "up": observer.is_alive,
        "end": observer.end_offset,
        "lag": observer.lag_records,
        "staleness_ms": observer.staleness_ms,
        "pulls_from": observer.parent,
    }


def _compaction(at: TopicPartition, found: CompactionProgress) -> dict[str, Json]:
    """Of the leader: every broker compacts by itself."""
    cleaned_ms = found.cleaned_ms
    return {
        "partition": at.partition,
        "dirty_ratio": round(found.dirty_ratio, 3),
        "last_run": strftime(cleaned_ms, "%Y-%m-%dT%H:%M:%SZ") if cleaned_ms is not None else None,
        "set_aside": found.why_set_aside or None,
    }


@dataclass(frozen=True, slots=True)
class _Facts:
    """What there is to say of a topic; no extents for partitions that have no leader."""

    description: TopicDescription
    extents: Mapping[TopicPartition, Extent]
    configs: Sequence[ConfigEntry]
    replicas: Mapping[TopicPartition, PartitionReplicas]

    @property
    def replication_factor(self) -> int:
        """How many replicas of its first partition vote."""
        voters = self.voters()
        return len(voters[0]) if voters else 0

    def voters(self) -> dict[int, list[NodeId]]:
        """The replicas of each partition that vote, or are to."""
        observing = {(at.partition, each.node_id) for at, each in self.observers()}
        return {
            p.partition: [node for node in p.replicas if (p.partition, node) not in observing]
            for p in self.description.partitions
        }

    def compactions(self) -> Iterator[tuple[TopicPartition, CompactionProgress]]:
        for at, found in sorted(self.replicas.items()):
            if found.compaction is not None:
                yield at, found.compaction

    def observers(self) -> Iterator[tuple[TopicPartition, ReplicaStanding]]:
        for at, found in sorted(self.replicas.items()):
            for each in found.observers:
                yield at, each


async def _gather(client: Client, name: str) -> _Facts:
    description = await client.admin.describe_topic(name)
    led = [
        TopicPartition(name, p.partition) for p in description.partitions if p.leader is not None
    ]
    return _Facts(
        description,
        await extents(client.admin, led),
        await unless_unsupported(client.admin.describe_configs(name), []),
        await unless_unsupported(client.admin.describe_replicas(partitions_of(description)), {}),
    )
