"""Users' credentials and ACLs: what administrators ask about who may do what."""

from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.config.users import User
from tidemark.broker.handlers import (
    create_acls,
    delete_acls,
    describe_acls,
    describe_user_scram_credentials,
)
from tidemark.broker.handlers.describe_acls import NO_ACLS
from tidemark.broker.network.sasl import ITERATIONS
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidemark.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidemark.protocol.messages.describe_acls import DescribeAclsRequest
from tidemark.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    UserName,
)

USERS = (User("ann", "secret"), User("bob", "hidden"))
SHA_256 = CredentialInfo(mechanism=1, iterations=ITERATIONS)
SHA_512 = CredentialInfo(mechanism=2, iterations=ITERATIONS)


async def credentials(node: Node, *names: str) -> dict[str, tuple[ErrorCode, list[CredentialInfo]]]:
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in names] if names else None
    )
    answer = await ask(describe_user_scram_credentials.handle, node, request, 0)
    assert all((each.error_code == 0) == (each.error_message is None) for each in answer.results)
    return {
        each.user: (ErrorCode(each.error_code), list(each.credential_infos))
        for each in answer.results
    }


async def test_all_users_are_described_with_each_mechanism(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        both = (ErrorCode.NONE, [SHA_256, SHA_512])
        assert await credentials(node) == {"ann": both, "bob": both}
        request = DescribeUserScramCredentialsRequest(users=())
        answer = await ask(describe_user_scram_credentials.handle, node, request, 0)
        assert [each.user for each in answer.results] == ["ann", "bob"]


async def test_a_user_is_described_once_and_a_stranger_not_at_all(tmp_path: Path) -> None:
    settings = {"users": USERS, "sasl_enabled_mechanisms": ("PLAIN", "SCRAM-SHA-512")}
    async with open_node(tmp_path, **settings) as node:
        assert await credentials(node, "bob", "eve", "ann", "ann") == {
            "bob": (ErrorCode.NONE, [SHA_512]),
            "eve": (ErrorCode.RESOURCE_NOT_FOUND, []),
            "ann": (ErrorCode.DUPLICATE_RESOURCE, []),
        }


async def test_nobody_has_credentials_of_mechanisms_that_are_off(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS, sasl_enabled_mechanisms=("PLAIN",)) as node:
        assert await credentials(node) == {}
        assert await credentials(node, "ann") == {"ann": (ErrorCode.RESOURCE_NOT_FOUND, [])}


@pytest.mark.parametrize("version", range(1, 4))
async def test_acls_are_refused_one_by_one_as_without_an_authorizer(
    tmp_path: Path, version: int
) -> None:
    asked = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=3,
        permission_type=3,
    )
    creation = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:ann",
        host="*",
        operation=3,
        permission_type=3,
    )
    matching = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=3,
        permission_type=3,
    )
    refused = (ErrorCode.SECURITY_DISABLED, NO_ACLS)
    async with open_node(tmp_path) as node:
        with pytest.raises(RequestError) as error:
            await ask(describe_acls.handle, node, asked, version)
        assert (error.value.code, error.value.message) == refused
        create = CreateAclsRequest(creations=[creation] * 2)
        made = (await ask(create_acls.CHANGE.answer, node, create, version)).results
        assert [(each.error_code, each.error_message) for each in made] == [refused] * 2
        delete = DeleteAclsRequest(filters=[matching] * 3)
        deleted = (await ask(delete_acls.CHANGE.answer, node, delete, version)).filter_results
        assert [(each.error_code, each.error_message) for each in deleted] == [refused] * 3
