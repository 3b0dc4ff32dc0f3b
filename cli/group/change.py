"""Delete groups and their commits, and change their configs."""

from collections.abc import Sequence
from functools import partial

import click

from tidemark.cli.arguments import Name
from tidemark.cli.each import do_each
from tidemark.cli.group.choices import Choice, parse_choice
from tidemark.cli.output import notice
from tidemark.cli.pairs import changes_options, require_changes
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, CommittedOffset, TopicPartition
from tidemark.protocol.errors import TidemarkError


@click.command()
@click.argument("names", nargs=-1, required=True, type=Name(), metavar="GROUP…")
@click.option(
    "--topic",
    "topics",
    type=Name(),
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Only the commits for this topic, or for partitions of it (orders:0,3-5), and no group; "
    "repeatable.",
)
@talks_to_brokers
@click.pass_obj
def delete(session: Session, names: tuple[str, ...], topics: tuple[str, ...]) -> None:
    """Delete groups that have no members, with their commits.

    With --topic they are still there, and begin that topic anew. They may have members then, as
    long as none reads the topic.

    Of several, one that cannot be deleted does not keep the others from it.
    """
    chosen = [parse_choice(topic) for topic in topics]

    async def delete_one(client: Client, name: str) -> str:
        await client.admin.delete_group(name)
        return f"deleted {name}"

    if chosen:
        session.run(lambda client: _delete_commits(client, names, chosen))
    else:
        session.run(lambda client: do_each(names, partial(delete_one, client)))


async def _delete_commits(client: Client, groups: Sequence[str], chosen: Sequence[Choice]) -> None:
    committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    async def delete(what: tuple[str, Choice]) -> str:
        group, choice = what
        if group not in committed:
            committed[group] = await client.admin.list_group_offsets(group)
        found = sorted(filter(choice.has, committed[group]))
        if not found:
            raise TidemarkError(f"group {group} has no commits for {choice}")
        await client.admin.delete_group_offsets(group, found)
        return f"{group} has no commits any more for {', '.join(map(str, found))}"

    pairs = [(group, choice) for group in groups for choice in chosen]
    await do_each(pairs, delete, name=lambda what: f"{what[1]} of {what[0]}")


@click.command()
@click.argument("name", type=Name(), metavar="GROUP")
@changes_options("Set a config, as in consumer.session.timeout.ms=60000; repeatable.")
@talks_to_brokers
@click.pass_obj
def alter(
    session: Session, name: str, configs: dict[str, str], unset: tuple[str, ...], dry_run: bool
) -> None:
    """Change configs of a group of the consumer protocol (KIP-848), be it there or not.

    They are consumer.session.timeout.ms and consumer.heartbeat.interval.ms, and hold from each
    member's next heartbeat on. Those not named stay as they are.
    """
    require_changes(configs, unset)
    session.run(
        lambda client: client.admin.alter_group_configs(
            name, configs, unset=unset, validate_only=dry_run
        )
    )
    notice(f"{name} could be altered" if dry_run else f"altered {name}")
