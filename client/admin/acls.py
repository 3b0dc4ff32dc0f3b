"""ACLs: who is allowed to do what."""

from collections.abc import Collection
from enum import IntEnum
from typing import Final

from tidemark.client.acl_descriptions import Acl, AclFilter
from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check, check_each, failed, left_out, raise_first
from tidemark.client.connection import Connection
from tidemark.protocol.acls import ANY, Operation, PatternType, Permission, ResourceType
from tidemark.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from tidemark.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tidemark.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_ALL: Final = AclFilter()


class AclAdmin(Calls):
    """The calls about ACLs. Brokers without an authorizer refuse them: SECURITY_DISABLED."""

    async def describe_acls(self, filter: AclFilter = _ALL) -> list[Acl]:
        """The ACLs that match, all of them by default."""
        request = DescribeAclsRequest(
            resource_type_filter=_number(filter.resource_type),
            resource_name_filter=filter.name,
            pattern_type_filter=_number(filter.pattern),
            principal_filter=filter.principal,
            host_filter=filter.host,
            operation=_number(filter.operation),
            permission_type=_number(filter.permission),
        )

        async def ask(connection: Connection) -> list[Acl]:
            answer = await connection.request(request, DescribeAclsResponse)
            check(answer.error_code, "DescribeAcls", answer.error_message)
            return [_described(at, each) for at in answer.resources for each in at.acls]

        return await self._on_any_broker(ask)

    async def create_acls(self, acls: Collection[Acl]) -> None:
        """Have these ACLs be there; one that is there already stays.

        Raises `RequestError` for the first that is refused, with the other refusals as its notes;
        the rest have been taken.
        """
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=acl.resource_type,
                    resource_name=acl.name,
                    resource_pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            ]
        )

        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, CreateAclsResponse)
            check_each(
                (created.error_code, _named(acl), created.error_message)
                for acl, created in zip(acls, answer.results)
            )
            raise_first([left_out(_named(acl)) for acl in [*acls][len(answer.results) :]])

        await self._on_controller(ask)

    async def delete_acls(self, *filters: AclFilter) -> list[Acl]:
        """Delete the ACLs that match any of these, and return which they were.

        Raises `RequestError` for the first that is not deleted, with the other refusals as its
        notes; the rest are gone. After a lost connection it is asked again, and what was deleted
        before is not in the answer.
        """
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=_number(each.resource_type),
                    resource_name_filter=each.name,
                    pattern_type_filter=_number(each.pattern),
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=_number(each.operation),
                    permission_type=_number(each.permission),
                )
                for each in filters
            ]
        )

        async def ask(connection: Connection) -> list[Acl]:
            answer = await connection.request(request, DeleteAclsResponse)
            deleted: dict[Acl, None] = {}
            refusals = []
            for result in answer.filter_results:
                if result.error_code:
                    refusals.append(failed(result.error_code, "DeleteAcls", result.error_message))
                for each in result.matching_acls:
                    acl = _deleted(each)
                    if each.error_code:
                        refusals.append(failed(each.error_code, _named(acl), each.error_message))
                    deleted[acl] = None  # once, if several filters matched it
            raise_first(refusals)
            return list(deleted)

        return await self._on_controller(ask)


def _named(acl: Acl) -> str:
    return f"the ACL of {acl.principal} on {acl.resource_type.name} {acl.name}"


def _number(wanted: IntEnum | None) -> int:
    return ANY if wanted is None else wanted.value


def _described(at: DescribeAclsResource, acl: AclDescription) -> Acl:
    return Acl(
        principal=acl.principal,
        permission=Permission(acl.permission_type),
        operation=Operation(acl.operation),
        resource_type=ResourceType(at.resource_type),
        name=at.resource_name,
        pattern=PatternType(at.pattern_type),
        host=acl.host,
    )


def _deleted(acl: DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        principal=acl.principal,
        permission=Permission(acl.permission_type),
        operation=Operation(acl.operation),
        resource_type=ResourceType(acl.resource_type),
        name=acl.resource_name,
        pattern=PatternType(acl.pattern_type),
        host=acl.host,
    )
