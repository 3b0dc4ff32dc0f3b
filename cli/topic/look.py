"""List and describe topics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import click

from tidemark.cli.durability import describe_durability
from tidemark.cli.lookup import Extent, extents, unless_unsupported
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    output_option,
    print_rows,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, ConfigEntry, TopicDescription, TopicPartition

Command = TypeVar("Command", bound=Callable[..., None])


@click.command("list")
@click.option(
    "-i", "--internal", is_flag=True, help="Show those that the cluster keeps for itself, too."
)
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, internal: bool, form: Form) -> None:
    """List topics."""
    topics = session.run(lambda client: client.admin.list_topics(internal=internal))
    rows: list[dict[str, Json]] = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replicas": topic.replication_factor,
            "internal": topic.is_internal,
            "topic_id": _topic_id(topic),
        }
        for topic in topics
    ]
    columns = [
        Column("name"),
        Column("partitions"),
        Column("replicas"),
        Column("internal", wide=True),
        Column("topic_id", wide=True),
    ]
    print_rows(rows, columns, form)


def _topic_id(topic: TopicDescription) -> str | None:
    """None for brokers that have no topic ids."""
    return str(topic.topic_id) if topic.topic_id.int else None


@click.command()
@click.argument("name", metavar="TOPIC")
@output_option
@talks_to_brokers
@click.pass_obj
def describe(session: Session, name: str, form: Form) -> None:
    """Show a topic's durability, partitions and configs."""
    facts = session.run(lambda client: _gather(client, name))
    description, logs, configs = facts.description, facts.extents, facts.configs
    partitions: list[dict[str, Json]] = [
        {
            "partition": p.partition,
            "leader": p.leader,
            "epoch": p.leader_epoch,
            "replicas": p.replicas,
            "in_sync": p.in_sync,
            "offline": p.offline,
            "start": logs[at].start if (at := TopicPartition(name, p.partition)) in logs else None,
            "high_watermark": logs[at].end if at in logs else None,
            "error": p.error.name if p.error else None,
        }
        for p in description.partitions
    ]
    durability = describe_durability({entry.name: entry.value for entry in configs})
    summary: dict[str, Json] = {
        "name": name,
        "topic_id": _topic_id(description),
        "internal": description.is_internal,
        "replicas": description.replication_factor,
        "durability": durability,
    }
    shown = [entry for entry in configs if form is Form.WIDE or not entry.is_default]
    print_sections(
        {**summary, "partitions": partitions, "configs": [_config(entry) for entry in configs]},
        {
            "topic": name,
            "partitions": len(partitions),
            "replicas": description.replication_factor,
            "durability": f"a record is {durability}",
        },
        [
            Section(
                title="partitions",
                rows=partitions,
                columns=[
                    Column("partition"),
                    Column("leader"),
                    Column("epoch"),
                    Column("replicas"),
                    Column("in_sync"),
                    Column("offline", wide=True),
                    Column("start"),
                    Column("high_watermark"),
                    *([Column("error")] if any(p["error"] for p in partitions) else []),
                ],
            ),
            Section(
                title="configs" if form is Form.WIDE else "configs that are not the default",
                rows=[_config(entry) for entry in shown],
                columns=[Column("name"), Column("value"), Column("source", wide=True)],
            ),
        ],
        form,
    )


def _config(entry: ConfigEntry) -> dict[str, Json]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


@dataclass(frozen=True, slots=True)
class _Facts:
    """What there is to say of a topic; no extents for partitions that have no leader."""

    description: TopicDescription
    extents: Mapping[TopicPartition, Extent]
    configs: Sequence[ConfigEntry]


async def _gather(client: Client, name: str) -> _Facts:
    description = await client.admin.describe_topic(name)
    led = [
        TopicPartition(name, p.partition) for p in description.partitions if p.leader is not None
    ]
    return _Facts(
        description,
        await extents(client.admin, led),
        await unless_unsupported(client.admin.describe_configs(name), []),
    )
