"""Delete groups and their commits, and change their configs."""

from collections.abc import Sequence

import click

from tidemark.cli.arguments import Name
from tidemark.cli.group.choices import Choice, parse_choice
from tidemark.cli.output import notice
from tidemark.cli.pairs import changes_options, require_changes
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client
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
    """
    chosen = [parse_choice(topic) for topic in topics]

    async def delete_all(client: Client) -> None:
        for name in names:
            if chosen:
                await _delete_commits(client, name, chosen)
            else:
                await client.admin.delete_group(name)
                notice(f"deleted {name}")

    session.run(delete_all)


async def _delete_commits(client: Client, group: str, chosen: Sequence[Choice]) -> None:
    committed = await client.admin.list_group_offsets(group)
    found = {at for choice in chosen for at in committed if choice.has(at)}
    for choice in chosen:
        if not any(map(choice.has, found)):
            raise TidemarkError(f"group {group} has no commits for {choice}")
    await client.admin.delete_group_offsets(group, sorted(found))
    notice(f"{group} has no commits any more for {', '.join(map(str, sorted(found)))}")


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
