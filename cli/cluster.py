"""`tidemark cluster`: the cluster as a whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import click

from tidemark.cli.lookup import unless_unsupported
from tidemark.cli.output import Column, Form, Json, Section, output_option, print_sections
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, ClusterDescription, GroupListing, TopicDescription


@click.group()
def cluster() -> None:
    """Look at the cluster as a whole."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What there is to say of a cluster."""

    description: ClusterDescription
    topics: Sequence[TopicDescription]
    groups: Sequence[GroupListing]

    def summary(self) -> dict[str, Json]:
        partitions = [p for topic in self.topics for p in topic.partitions]
        return {
            "cluster": self.description.cluster_id,
            "controller": self.description.controller_id,
            "brokers": len(self.description.brokers),
            "topics": len(self.topics),
            "partitions": len(partitions),
            "under_replicated": sum(len(p.in_sync) < len(p.replicas) for p in partitions),
            "leaderless": sum(p.leader is None for p in partitions),
            "groups": dict(sorted(Counter(g.state.lower() or "any" for g in self.groups).items())),
        }

    def brokers(self) -> list[dict[str, Json]]:
        partitions = [p for topic in self.topics for p in topic.partitions]
        leaders = Counter(p.leader for p in partitions)
        replicas = Counter(node_id for p in partitions for node_id in p.replicas)
        return [
            {
                "node_id": broker.node_id,
                "address": broker.address,
                "rack": broker.rack,
                "controller": broker.node_id == self.description.controller_id,
                "leaders": leaders[broker.node_id],
                "replicas": replicas[broker.node_id],
            }
            for broker in sorted(self.description.brokers, key=lambda broker: broker.node_id)
        ]


@cluster.command()
@output_option
@talks_to_brokers
@click.pass_obj
def status(session: Session, form: Form) -> None:
    """Show brokers, controller, and counts of topics, partitions and groups."""
    facts = session.run(_gather)
    summary, brokers = facts.summary(), facts.brokers()
    print_sections(
        {**summary, "brokers": brokers},
        {key.replace("_", "-"): value for key, value in summary.items()},
        [Section(title="brokers", rows=brokers, columns=[Column(key) for key in brokers[0]])],
        form,
    )


async def _gather(client: Client) -> _Facts:
    return _Facts(
        await client.admin.describe_cluster(),
        await client.admin.list_topics(internal=True),
        await unless_unsupported(client.admin.list_groups(), []),
    )
