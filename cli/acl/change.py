"""Allow and deny, and take back what was allowed or denied."""

from collections.abc import Sequence
from itertools import product

import click

from tidemark.cli.acl.look import filters_of, find, print_acls
from tidemark.cli.acl.operations import Chosen, Resource, chosen_by_presets, chosen_each
from tidemark.cli.acl.options import (
    OperationsCommand,
    PrincipalType,
    Resources,
    host_filter_option,
    host_option,
    operations_option,
    pattern_of,
    permission_option,
    prefixed_option,
    preset_options,
    resource_options,
)
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.output import Form, notice, output_option
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client.acl_descriptions import Acl
from tidemark.protocol.acls import Operation, PatternType, Permission
from tidemark.protocol.errors import TidemarkError


@click.command(cls=OperationsCommand)
@click.argument("principal", type=PrincipalType())
@resource_options
@prefixed_option
@operations_option
@preset_options
@host_option
@talks_to_brokers
@click.pass_obj
def allow(
    session: Session,
    principal: str,
    resources: Resources,
    prefixed: bool,
    operations: tuple[Operation, ...],
    producer: bool,
    consumer: bool,
    host: str,
) -> None:
    """Allow a principal operations on resources.

    PRINCIPAL is a user, alice or User:alice; '*' is everybody. Who may read, write, delete or alter
    something may describe it, too, and who may alter configs may describe them.
    """
    chosen = chosen_by_presets(resources, operations, producer=producer, consumer=consumer)
    if chosen is None:
        chosen = _demanded(resources, operations, "--operation, --producer or --consumer")
    _create(session, principal, Permission.ALLOW, chosen, pattern_of(resources, prefixed), host)
    notice("allowed")


@click.command(cls=OperationsCommand)
@click.argument("principal", type=PrincipalType())
@resource_options
@prefixed_option
@operations_option
@host_option
@talks_to_brokers
@click.pass_obj
def deny(
    session: Session,
    principal: str,
    resources: Resources,
    prefixed: bool,
    operations: tuple[Operation, ...],
    host: str,
) -> None:
    """Deny a principal operations on resources, whatever allows them.

    PRINCIPAL is a user, alice or User:alice; '*' is everybody. A denial is for the exceptions from
    what is allowed: to take that back there is `tidemark acl remove`.
    """
    chosen = _demanded(resources, operations, "--operation")
    _create(session, principal, Permission.DENY, chosen, pattern_of(resources, prefixed), host)
    notice("denied")


def _demanded(
    resources: Sequence[Resource], operations: Sequence[Operation], options: str
) -> list[Chosen]:
    if not resources:
        raise click.UsageError("on what? Give --topic, --group, --transactional-id or --cluster")
    if not operations:
        raise click.UsageError(f"which operations? Give {options}")
    return chosen_each(resources, operations)


def _create(
    session: Session,
    principal: str,
    permission: Permission,
    chosen: Sequence[Chosen],
    pattern: PatternType,
    host: str,
) -> None:
    acls = [
        Acl(
            principal=principal,
            permission=permission,
            operation=operation,
            resource_type=resource.type,
            name=resource.name,
            pattern=pattern,
            host=host,
        )
        for resource, operation in chosen
    ]
    session.run(lambda client: client.admin.create_acls(acls))


@click.command()
@click.argument("principal", type=PrincipalType(), required=False)
@resource_options
@prefixed_option
@operations_option
@preset_options
@permission_option
@host_filter_option
@dry_run_option
@yes_option
@output_option
@talks_to_brokers
@click.pass_obj
def remove(
    session: Session,
    principal: str | None,
    resources: Resources,
    prefixed: bool,
    operations: tuple[Operation, ...],
    producer: bool,
    consumer: bool,
    permission: Permission | None,
    host: str | None,
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Remove ACLs, and print which they were.

    Those that allow and those that deny, of all hosts, unless --permission and --host say which.
    Names are as the ACLs have them: `--topic rides` is not that of all topics, and a prefix needs
    --prefixed.

    With a principal, resources and operations it is done at once. Where one of these is left out it
    stands for all: what goes is shown first, and asked about.
    """
    presets = chosen_by_presets(resources, operations, producer=producer, consumer=consumer)
    pattern = pattern_of(resources, prefixed)
    if not (principal or resources or operations or permission or host):
        raise click.UsageError("which ones? Give a principal, a resource or an operation")
    filters = filters_of(
        presets or product(resources or [None], operations or [None]),
        pattern=pattern,
        principal=principal,
        permission=permission,
        host=host,
    )
    names_all = bool(principal and resources and (operations or presets))
    asks = not (names_all or yes)
    if dry_run or asks:
        found = session.run(lambda client: find(client, filters))
        _print_some(found, form)
        if not confirm("Remove these ACLs?", yes=yes, dry_run=dry_run):
            return
    removed = session.run(lambda client: client.admin.delete_acls(*filters))
    if not asks:
        _print_some(removed, form)
    notice(f"removed {len(removed)}")


def _print_some(acls: Sequence[Acl], form: Form) -> None:
    """Raises `TidemarkError` where there are none: most likely a name is not right."""
    if not acls:
        raise TidemarkError("there is no such ACL: `tidemark acl list` shows those that there are")
    print_acls(acls, form)
