"""What every command that talks to brokers shares: where they are, and one trio run around a
client that is open for exactly as long as the command needs it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from tidemark.client import Client

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., None])

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
METAVAR: Final = "HOST:PORT[,…]"


@dataclass(frozen=True, slots=True)
class Session:
    """One invocation of the command: what the shared options said."""

    bootstrap: str = DEFAULT_BOOTSTRAP

    def run(self, use: Callable[["Client"], Awaitable[T]], *, rack: str | None = None) -> T:
        """Open a client, give it to `use`, close it, and return what `use` returned.

        With a `rack`, its consumers read from replicas there.

        What `use` raises may arrive in an `ExceptionGroup`; `cli/main.py` unwraps it.
        """
        # Here, not above: `tidemark --help` needs neither.
        import trio

        from tidemark.client import open_client

        async def main() -> T:
            async with open_client(self.bootstrap, client_id="tidemark-cli", rack=rack) as client:
                return await use(client)

        return trio.run(main)


bootstrap_option = click.option(
    "--bootstrap",
    envvar="TIDEMARK_BOOTSTRAP",
    metavar=METAVAR,
    help=f"Brokers to start from.  [env: TIDEMARK_BOOTSTRAP; default: {DEFAULT_BOOTSTRAP}]",
)


def _override(ctx: click.Context, _: click.Parameter, bootstrap: str | None) -> None:
    if bootstrap is not None:
        ctx.obj = Session(bootstrap)


def talks_to_brokers(command: Command) -> Command:
    """Let a command be given `--bootstrap` after its name, too, where people look for it."""
    option = click.option(
        "--bootstrap",
        metavar=METAVAR,
        expose_value=False,
        is_eager=True,  # Before the command's own options, whatever the order on the line.
        callback=_override,
        help="Brokers to start from, as before the command's name.",
    )
    return option(command)
