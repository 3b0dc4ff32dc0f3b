"""The options of `tidemark acl`: principals, resources and operations."""

from collections.abc import Callable, Sequence
from functools import wraps
from textwrap import wrap
from typing import Final, TypeAlias, TypeVar

import click

from tidemark.cli.acl.operations import CHOICES, Resource, noun, word
from tidemark.cli.arguments import Name
from tidemark.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

Command = TypeVar("Command", bound=Callable[..., None])
Resources: TypeAlias = tuple[Resource, ...]

_WIDTH: Final = max(map(len, map(word, CHOICES)))


class PrincipalType(Name):
    """Who an ACL is about: `alice` is short for `User:alice`."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        value = super().convert(value, param, ctx)
        kind, colon, who = value.partition(":")
        if not colon or "=" in kind:  # a name from a certificate, CN=urn:alice
            return f"User:{value}"
        if not (kind and who):
            self.fail(f"{value!r} is no principal: write it as in User:alice", param, ctx)
        if kind != "User" and kind.lower() == "user":
            self.fail(f"{value!r} is nobody: write User:{who}, with a capital", param, ctx)
        return value


class OperationsCommand(click.Command):
    """A command whose help ends with what can be done with which resources."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Operations"):
            for resource_type, operations in CHOICES.items():
                what = f"  {noun(resource_type):<{_WIDTH}}  "
                lines = wrap(
                    ", ".join(map(word, operations)),
                    width=formatter.width,
                    initial_indent=what,
                    subsequent_indent=" " * len(what),
                    break_on_hyphens=False,  # click's own lists would, within an operation's name
                )
                formatter.write("".join(f"{line}\n" for line in lines))


def resource_options(command: Callable[..., None]) -> Callable[..., None]:
    """Which resources, all of them as one argument: `resources`."""

    @wraps(command)
    def collecting(
        *args: object,
        topics: Resources,
        groups: Resources,
        transactional_ids: Resources,
        cluster: Resources,
        **options: object,
    ) -> None:
        command(*args, resources=(*topics, *groups, *transactional_ids, *cluster), **options)

    with_options: Callable[..., None] = collecting
    for option in (
        click.option(
            "--cluster",
            is_flag=True,
            callback=lambda _ctx, _param, is_given: (
                (Resource(ResourceType.CLUSTER, CLUSTER_NAME),) if is_given else ()
            ),
            help="The cluster itself.",
        ),
        _named("--transactional-id", "transactional_ids", ResourceType.TRANSACTIONAL_ID),
        _named("--group", "groups", ResourceType.GROUP),
        _named("--topic", "topics", ResourceType.TOPIC),
    ):
        with_options = option(with_options)
    return with_options


def _named(
    option: str, parameter: str, resource_type: ResourceType
) -> Callable[[Command], Command]:
    return click.option(
        option,
        parameter,
        type=Name(),
        multiple=True,
        callback=lambda _ctx, _param, names: tuple(Resource(resource_type, each) for each in names),
        metavar="NAME",
        help=f"A {noun(resource_type)}; '*' is all; repeatable.",
    )


prefixed_option = click.option(
    "--prefixed", is_flag=True, help="The names are prefixes: all that begin so."
)
operations_option = click.option(
    "--operation",
    "operations",
    type=click.Choice(
        list(dict.fromkeys(word(each) for known in CHOICES.values() for each in known)),
        case_sensitive=False,
    ),
    multiple=True,
    callback=lambda _ctx, _param, words: tuple(_operation(each) for each in words),
    metavar="OPERATION",
    help="What is done, as read or write; repeatable.",
)
permission_option = click.option(
    "--permission",
    type=click.Choice([word(Permission.ALLOW), word(Permission.DENY)]),
    callback=lambda _ctx, _param, value: Permission[value.upper()] if value else None,
    help="Only what allows, or only what denies.",
)


def _operation(word: str) -> Operation:
    return Operation[word.upper().replace("-", "_")]


host_option = click.option(
    "--host",
    type=Name(),
    default="*",
    show_default=True,
    metavar="IP",
    help="The address that it comes from; '*' is any.",
)
host_filter_option = click.option(
    "--host", type=Name(), metavar="IP", help="Only those of this address; '*' is those of any."
)


def preset_options(command: Command) -> Command:
    """The usual operations, instead of naming each."""
    consumer = click.option(
        "--consumer", is_flag=True, help="Read and describe the topics; read in the groups."
    )
    producer = click.option(
        "--producer",
        is_flag=True,
        help="Write, describe and create the topics; write and describe the transactional ids.",
    )
    return producer(consumer(command))


def pattern_of(resources: Sequence[Resource], prefixed: bool) -> PatternType:
    """How the names are matched. Raises `UsageError` where they cannot be prefixes."""
    if not prefixed:
        return PatternType.LITERAL
    if any(each.type is ResourceType.CLUSTER for each in resources) or not resources:
        raise click.UsageError("--prefixed is about names: of topics, groups or transactional ids")
    if any(each.name == "*" for each in resources):
        raise click.UsageError("'*' is all names already: leave --prefixed out")
    return PatternType.PREFIXED
