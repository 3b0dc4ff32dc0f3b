"""What every command that talks to brokers shares: where they are, and one trio run around a
client that is open for exactly as long as the command needs it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from tidemark.cli.client_options import (
    BOOTSTRAP,
    FILE_VARIABLE,
    read_file,
    read_pairs,
    settings_of,
)
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.client import Client, ClientSettings

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., None])

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
METAVAR: Final = "HOST:PORT[,…]"


@dataclass(frozen=True, slots=True)
class Session:
    """One invocation of the command: what the shared options said."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    options: Mapping[str, str] = field(default_factory=dict)
    """More about how brokers are reached, by Kafka's names."""

    def settings(self, *, rack: str | None = None) -> "ClientSettings":
        """What a client is to be opened with.

        Raises `UsageError` for an option, or a bootstrap address, that cannot be used.
        """
        from tidemark.client.addresses import parse_bootstrap

        try:
            parse_bootstrap(self.bootstrap)
            return settings_of(self.options, rack=rack)
        except ConfigError as error:
            raise click.UsageError(str(error)) from None

    def run(self, use: Callable[["Client"], Awaitable[T]], *, rack: str | None = None) -> T:
        """Open a client, give it to `use`, close it, and return what `use` returned.

        With a `rack`, its consumers read from replicas there.

        What `use` raises may arrive in an `ExceptionGroup`; `cli/failures.py` unwraps it.
        """
        # Here, not above: `tidemark --help` needs neither.
        import trio

        from tidemark.client import open_client

        settings = self.settings(rack=rack)

        async def main() -> T:
            async with open_client(self.bootstrap, settings=settings) as client:
                return await use(client)

        return trio.run(main)


def open_session(
    bootstrap: str | None, client_config: Path | None, pairs: Sequence[str]
) -> Session:
    """What the options before the command's name say. `bootstrap` counts most, be it from the
    command line or from its variable, then `-X`, then the file."""
    options = {} if client_config is None else read_file(client_config)
    options |= read_pairs(pairs)
    if bootstrap is None:
        bootstrap = options.get(BOOTSTRAP, DEFAULT_BOOTSTRAP)
    return Session(bootstrap, options)


def shared_options(command: Command) -> Command:
    """What may stand before the command's name."""
    for option in (
        click.option(
            "-X",
            "pairs",
            multiple=True,
            metavar="NAME=VALUE",
            help="More about how brokers are reached, as Kafka's clients name it:"
            " security.protocol, sasl.mechanism, sasl.username, ssl.ca.location, …",
        ),
        click.option(
            "--client-config",
            envvar=FILE_VARIABLE,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help=f"A file of NAME=VALUE lines, as for -X.  [env: {FILE_VARIABLE}]",
        ),
        click.option(
            "--bootstrap",
            envvar="TIDEMARK_BOOTSTRAP",
            metavar=METAVAR,
            help="Brokers to connect to first."
            f"  [env: TIDEMARK_BOOTSTRAP; default: {DEFAULT_BOOTSTRAP}]",
        ),
    ):
        command = option(command)
    return command


def _move(ctx: click.Context, _: click.Parameter, bootstrap: str | None) -> None:
    if bootstrap is not None:
        ctx.obj = replace(ctx.find_object(Session) or Session(), bootstrap=bootstrap)


def _add(ctx: click.Context, _: click.Parameter, pairs: Sequence[str]) -> None:
    if pairs:
        session, given = ctx.find_object(Session) or Session(), read_pairs(pairs)
        bootstrap = given.get(BOOTSTRAP, session.bootstrap)
        ctx.obj = replace(session, bootstrap=bootstrap, options={**session.options, **given})


def talks_to_brokers(command: Command) -> Command:
    """Let a command be given `--bootstrap` and `-X` after its name, too, where people look for
    them."""
    bootstrap = click.option(
        "--bootstrap",
        metavar=METAVAR,
        expose_value=False,
        is_eager=True,  # Before the command's own options, whatever the order on the line.
        callback=_move,
        help="May be given here as well as before the command.",
    )
    more = click.option(
        "-X",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        expose_value=False,
        is_eager=True,
        callback=_add,
        help="May be given here as well as before the command.",
    )
    return bootstrap(more(command))
