"""List ACLs."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

import click

from tidemark.cli.acl.operations import Resource, word
from tidemark.cli.acl.options import (
    PrincipalType,
    Resources,
    host_filter_option,
    operations_option,
    permission_option,
    resource_options,
)
from tidemark.cli.output import Column, Form, Json, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client
from tidemark.client.acl_descriptions import Acl, AclFilter
from tidemark.protocol.acls import Operation, PatternType, Permission

_KEYS: Final = ("principal", "permission", "operation", "resource", "pattern", "name", "host")


@click.command("list")
@click.option(
    "--principal",
    type=PrincipalType(),
    metavar="PRINCIPAL",
    help="Only those of this one, alice or User:alice; '*' is those of everybody.",
)
@resource_options
@operations_option
@permission_option
@host_filter_option
@output_option
@talks_to_brokers
@click.pass_obj
def list_(
    session: Session,
    principal: str | None,
    resources: Resources,
    operations: tuple[Operation, ...],
    permission: Permission | None,
    host: str | None,
    form: Form,
) -> None:
    """List ACLs, all of them or those that are about something.

    With --topic and the like it is those that hold for a resource of that name: its own, those of
    prefixes that it begins with, and those of '*'.
    """
    filters = filters_of(
        product(resources or [None], operations or [None]),
        pattern=PatternType.MATCH,
        principal=principal,
        permission=permission,
        host=host,
    )
    print_acls(session.run(lambda client: find(client, filters)), form)


def filters_of(
    chosen: Iterable[tuple[Resource | None, Operation | None]],
    *,
    pattern: PatternType,
    principal: str | None,
    permission: Permission | None,
    host: str | None,
) -> list[AclFilter]:
    """One filter for each resource and operation, where None is any."""
    return [
        AclFilter(
            principal=principal,
            permission=permission,
            operation=operation,
            resource_type=None if resource is None else resource.type,
            name=None if resource is None else resource.name,
            pattern=None if resource is None else pattern,
            host=host,
        )
        for resource, operation in chosen
    ]


async def find(client: Client, filters: Sequence[AclFilter]) -> list[Acl]:
    """What any of the filters matches."""
    found: dict[Acl, None] = {}
    for each in filters:
        found.update(dict.fromkeys(await client.admin.describe_acls(each)))
    return list(found)


def print_acls(acls: Iterable[Acl], form: Form) -> None:
    """By principal, and then by what they are about."""
    rows = [_row(each) for each in sorted(acls, key=_place)]
    print_rows(rows, [Column(key) for key in _KEYS], form)


def _place(acl: Acl) -> tuple[object, ...]:
    about = acl.resource_type, acl.name, acl.pattern
    return acl.principal, *about, acl.permission, acl.operation, acl.host


def _row(acl: Acl) -> dict[str, Json]:
    return {
        "principal": acl.principal,
        "permission": word(acl.permission),
        "operation": word(acl.operation),
        "resource": word(acl.resource_type),
        "pattern": word(acl.pattern),
        "name": acl.name,
        "host": acl.host,
    }
