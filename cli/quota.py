"""`tidemark quota`: how much users and clients may send, fetch and have done."""

from collections.abc import Callable
from typing import Final, TypeVar

import click

from tidemark.cli.arguments import Name
from tidemark.cli.numbers import Real, Whole
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs
from tidemark.client.descriptions import Default

Command = TypeVar("Command", bound=Callable[..., None])

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
_DEFAULT: Final = "<default>"


@click.group(cls=Verbs)
def quota() -> None:
    """Limit what users and clients may send, fetch, and use of the processors."""


def _entity(command: Command) -> Command:
    """Whose quota it is."""
    for option in (
        click.option("--client-default", is_flag=True, help="Client ids without one of their own."),
        click.option("--client", type=Name(), metavar="ID", help="A client id."),
        click.option("--user-default", is_flag=True, help="Users without one of their own."),
        click.option(
            "--user",
            type=Name(),
            metavar="NAME",
            help="A user; ANONYMOUS without authentication.",
        ),
    ):
        command = option(command)
    return command


def _name(name: str | None, is_default: bool, what: str) -> str | Default | None:
    if name is not None and is_default:
        raise click.UsageError(f"--{what} and --{what}-default exclude each other")
    return Default.DEFAULT if is_default else name


def _named(
    user: str | None, user_default: bool, client: str | None, client_default: bool
) -> tuple[str | Default | None, str | Default | None]:
    """The user and the client id."""
    names = _name(user, user_default, "user"), _name(client, client_default, "client")
    if names == (None, None):
        raise click.UsageError("whose quota? Give --user, --client, or the default of one")
    return names


@quota.command(name="list")
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, form: Form) -> None:
    """List all quotas.

    Each broker counts by itself: bytes a second in and out, and percent of its processor's time.
    """
    quotas = session.run(lambda client: client.admin.describe_quotas())
    rows: list[dict[str, Json]] = [
        {
            "user": _shown(each.user),
            "client": _shown(each.client_id),
            "produce": _whole(each.values.get(PRODUCE)),
            "fetch": _whole(each.values.get(FETCH)),
            "request": each.values.get(REQUEST),
        }
        for each in quotas
    ]
    headings = {"produce": "produce-bytes/s", "fetch": "fetch-bytes/s", "request": "request-%"}
    columns = ["user", "client", "produce", "fetch", "request"]
    print_rows(rows, [Column(key, headings.get(key)) for key in columns], form)


def _shown(name: str | Default | None) -> str | None:
    return _DEFAULT if name is Default.DEFAULT else name


def _whole(rate: float | None) -> int | None:
    return None if rate is None else int(rate)


@quota.command(name="set")
@_entity
@click.option(
    "--produce", type=Whole(1, bits=64), metavar="BYTES", help="Bytes produced per second."
)
@click.option("--fetch", type=Whole(1, bits=64), metavar="BYTES", help="Bytes fetched per second.")
@click.option(
    "--request",
    type=Real(0, min_open=True),
    metavar="PERCENT",
    help="Percent of one processor's time.",
)
@talks_to_brokers
@click.pass_obj
def set_(
    session: Session,
    user: str | None,
    user_default: bool,
    client: str | None,
    client_default: bool,
    produce: int | None,
    fetch: int | None,
    request: float | None,
) -> None:
    """Set quotas; those that are not given stay as they are.

    With both a user and a client, it is for that client of that user. A user's quota is shared by
    all its clients, a default is for each by itself.
    """
    names = _named(user, user_default, client, client_default)
    given = {PRODUCE: produce, FETCH: fetch, REQUEST: request}
    values = {key: float(value) for key, value in given.items() if value is not None}
    if not values:
        raise click.UsageError("which quota? Give --produce, --fetch or --request")
    session.run(lambda at: at.admin.alter_quotas(user=names[0], client_id=names[1], set=values))
    notice("set")


@quota.command()
@_entity
@click.option("--produce", is_flag=True, help="Only the quota on what is produced.")
@click.option("--fetch", is_flag=True, help="Only the one on what is fetched.")
@click.option("--request", is_flag=True, help="Only the one on time.")
@talks_to_brokers
@click.pass_obj
def remove(
    session: Session,
    user: str | None,
    user_default: bool,
    client: str | None,
    client_default: bool,
    produce: bool,
    fetch: bool,
    request: bool,
) -> None:
    """Remove quotas, all of them if none is named."""
    names = _named(user, user_default, client, client_default)
    flags = {PRODUCE: produce, FETCH: fetch, REQUEST: request}
    keys = [key for key, is_named in flags.items() if is_named] or list(flags)
    session.run(lambda at: at.admin.alter_quotas(user=names[0], client_id=names[1], remove=keys))
    notice("removed")
