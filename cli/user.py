"""`tidemark user`: who can log in with SCRAM, and by which password."""

import os
import sys
from collections.abc import Callable
from typing import BinaryIO, Final, TypeVar

import click

from tidemark.cli.arguments import Name
from tidemark.cli.numbers import Whole
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs

Command = TypeVar("Command", bound=Callable[..., None])

PASSWORD_VARIABLE: Final = "TIDEMARK_USER_PASSWORD"
_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS: Final = 4096


def _mechanisms(help: str) -> Callable[[Command], Command]:
    return click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(_MECHANISMS, case_sensitive=False),
        multiple=True,
        help=help,
    )


@click.group(cls=Verbs)
def user() -> None:
    """See and change who can log in.

    Users belong to the cluster, and log in with SCRAM at any of its brokers. Those in the brokers'
    settings are changed there.
    """


@user.command(name="list")
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, form: Form) -> None:
    """List users, with the mechanisms of their passwords.

    Those in the settings of the broker that answers are among them. Passwords nobody can list.
    """
    users = session.run(lambda client: client.admin.describe_users())
    rows: list[dict[str, Json]] = [
        {"user": each.name, "mechanism": mechanism, "iterations": iterations}
        for each in sorted(users, key=lambda each: each.name)
        for mechanism, iterations in sorted(each.iterations.items())
    ]
    print_rows(rows, [Column(key) for key in ("user", "mechanism", "iterations")], form)


@user.command(name="set")
@click.argument("name", type=Name())
@_mechanisms("Only by this one; repeatable. By others an older password is valid still.")
@click.option(
    "--iterations",
    type=Whole(_ITERATIONS),
    default=_ITERATIONS,
    show_default=True,
    help="How often the password is hashed; 16384 is the most.",
)
@click.option(
    "--password-file",
    type=click.File("rb"),
    metavar="FILE",
    help="What the password is read from; - is standard input.",
)
@talks_to_brokers
@click.pass_obj
def set_(
    session: Session,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: BinaryIO | None,
) -> None:
    """Set a user's password, and make the user if there is none.

    The password is that of --password-file, or else of the variable TIDEMARK_USER_PASSWORD; a
    terminal is asked for it, and otherwise it is read from standard input. What has logged in with
    an older one stays connected.
    """
    password = _password(password_file)
    session.run(
        lambda client: client.admin.set_user(
            name, password, mechanisms=mechanisms or _MECHANISMS, iterations=iterations
        )
    )
    notice("set")


def _password(file: BinaryIO | None) -> str:
    if file is None:
        given = os.environ.get(PASSWORD_VARIABLE)
        if given is not None:
            return given
        if sys.stdin.isatty():
            asked: str = click.prompt(
                "Password", hide_input=True, confirmation_prompt=True, err=True
            )
            return asked
    try:
        text = (file or sys.stdin.buffer).read().decode()
    except UnicodeDecodeError:
        raise click.UsageError("the password is not UTF-8, which it has to be") from None
    return text.removesuffix("\n").removesuffix("\r")


@user.command()
@click.argument("name", type=Name())
@_mechanisms("Only the password by this one; repeatable.")
@talks_to_brokers
@click.pass_obj
def delete(session: Session, name: str, mechanisms: tuple[str, ...]) -> None:
    """Delete a user, who cannot log in from then on. What has logged in stays connected."""
    session.run(lambda client: client.admin.delete_user(name, mechanisms=mechanisms))
    notice("deleted")
