"""`NAME=VALUE` on the command line: configs, and all else that is set by its name.

Knows nothing of clients, for a broker imports it.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import click

from tidemark.cli.confirm import check_only_option

Command = TypeVar("Command", bound=Callable[..., None])


def parse_pairs(
    _: click.Context, option: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    """The callback of an option that may be repeated. Of what is named twice, the last counts."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not {option.metavar}")
        found[name] = value
    return found


def config_option(help: str) -> Callable[[Command], Command]:
    """`--config KEY=VALUE`, given to the command as `configs`."""
    return click.option(
        "-c",
        "--config",
        "configs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=parse_pairs,
        help=help,
    )


def changes_options(help: str) -> Callable[[Command], Command]:
    """What configs are changed by: `--config`, `--unset` and `--dry-run`."""
    unset = click.option(
        "-d",
        "--unset",
        multiple=True,
        metavar="KEY",
        help="Reset a config to its default; repeatable.",
    )

    def add(command: Command) -> Command:
        return config_option(help)(unset(check_only_option(command)))

    return add


def require_changes(configs: Mapping[str, str], unset: Collection[str]) -> None:
    """Raises `UsageError` where neither option says anything."""
    if not configs and not unset:
        raise click.UsageError("say what to change, with --config KEY=VALUE or --unset KEY")
