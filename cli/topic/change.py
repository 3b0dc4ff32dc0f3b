"""Create, alter, grow and delete topics."""

from functools import partial

import click

from tidemark.cli.arguments import Name
from tidemark.cli.confirm import check_only_option
from tidemark.cli.each import do_each
from tidemark.cli.numbers import WHOLE_MAX, Whole
from tidemark.cli.output import notice
from tidemark.cli.pairs import changes_options, config_option, require_changes
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, ErrorCode, RequestError, TopicPartition


class _Observers(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """A number of observers, or the numbers of brokers."""

    name = "observers"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, ...]:
        numbers = [each.strip() for each in value.split(",") if each.strip()]
        if not numbers or not all(map(_is_number, numbers)):
            self.fail(
                f"{value!r} is neither a number of observers nor brokers, as in 4,5", param, ctx
            )
        found = tuple(Whole(0).convert(each, param, ctx) for each in numbers)
        return found if "," in value else found[0]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


async def _name_observers(client: Client, topic: str, brokers: tuple[int, ...]) -> None:
    description = await client.admin.describe_topic(topic)
    observers = {TopicPartition(topic, p.partition): brokers for p in description.partitions}
    try:
        await client.admin.set_observers(observers)
    except RequestError as error:
        raise RequestError(
            error.code,
            f"topic {topic} is created, though not all of it is observed: {error.message}; "
            "`tidemark replica add --observer` names others",
        ) from error


@click.command()
@click.argument("names", nargs=-1, required=True, type=Name(), metavar="TOPIC…")
@click.option(
    "-p",
    "--partitions",
    type=Whole(1),
    help="Number of partitions; the broker's default if not given.",
)
@click.option(
    "-r",
    "--replicas",
    type=Whole(1, bits=16),
    help="Replicas of each partition; the broker's default if not given.",
)
@click.option(
    "--observers",
    metavar="N|BROKERS",
    type=_Observers(),
    help="How many observers each partition gets: copies to be read from, without a vote. Or which "
    "brokers observe, as in 4,5 (one alone as 4,).",
)
@config_option("A config of the topic, as in flush=os; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@check_only_option
@talks_to_brokers
@click.pass_obj
def create(
    session: Session,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    observers: int | tuple[int, ...] | None,
    configs: dict[str, str],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics.

    Of several, one that cannot be created does not keep the others from it.
    """
    if isinstance(observers, int):
        configs = {**configs, "observers": str(observers)}

    async def create_one(client: Client, name: str) -> str:
        try:
            await client.admin.create_topic(
                name,
                partitions=partitions or -1,
                replication_factor=replicas or -1,
                configs=configs,
                validate_only=dry_run,
            )
        except RequestError as error:
            if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                raise
            return f"{name} is there already"
        if dry_run:
            return f"{name} could be created"
        if isinstance(observers, tuple):
            await _name_observers(client, name, observers)
        return f"created {name}"

    session.run(lambda client: do_each(names, partial(create_one, client)))


@click.command()
@click.argument("name", type=Name(), metavar="TOPIC")
@changes_options("Set a config; repeatable.")
@talks_to_brokers
@click.pass_obj
def alter(
    session: Session, name: str, configs: dict[str, str], unset: tuple[str, ...], dry_run: bool
) -> None:
    """Change a topic's configs; those not named stay as they are."""
    require_changes(configs, unset)
    session.run(
        lambda client: client.admin.alter_configs(name, configs, unset=unset, validate_only=dry_run)
    )
    notice(f"{name} could be altered" if dry_run else f"altered {name}")


@click.command("add-partitions")
@click.argument("name", type=Name(), metavar="TOPIC")
@click.option("-n", "--add", type=Whole(1), help="How many to add.")
@click.option("--total", type=Whole(1), help="Or how many there are to be in total.")
@check_only_option
@talks_to_brokers
@click.pass_obj
def add_partitions(
    session: Session, name: str, add: int | None, total: int | None, dry_run: bool
) -> None:
    """Add partitions to a topic. From then on, keys may go to other partitions than before."""
    if (add is None) == (total is None):
        raise click.UsageError("say either --add N or --total N")

    async def grow(client: Client) -> int:
        count = total
        if count is None:
            assert add is not None
            count = len((await client.admin.describe_topic(name)).partitions) + add
            if count > WHOLE_MAX:
                raise click.UsageError(f"{name} would have {count} partitions, above {WHOLE_MAX}")
        await client.admin.create_partitions(name, count, validate_only=dry_run)
        return count

    count = session.run(grow)
    notice(f"{name} {'could have' if dry_run else 'has'} {count} partitions")


@click.command()
@click.argument("names", nargs=-1, required=True, type=Name(), metavar="TOPIC…")
@click.option("--if-exists", is_flag=True, help="Do not fail if there is no such topic.")
@talks_to_brokers
@click.pass_obj
def delete(session: Session, names: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics with their records, at once and for good.

    Of several, one that cannot be deleted does not keep the others from it.
    """

    async def delete_one(client: Client, name: str) -> str:
        try:
            await client.admin.delete_topic(name)
        except RequestError as error:
            if not (if_exists and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise
            return f"there is no {name}"
        return f"deleted {name}"

    session.run(lambda client: do_each(names, partial(delete_one, client)))
