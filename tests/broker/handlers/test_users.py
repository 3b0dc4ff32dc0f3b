"""Users of the cluster are set, described and deleted by requests."""

import hashlib
from pathlib import Path

import pytest
from scramp import ScramMechanism

from tests.broker.handlers.altering_users import (
    SHA_256,
    SHA_512,
    alter,
    deletion,
    described,
    upsertion,
)
from tests.broker.nodes import open_node
from tidemark.broker.config.users import User
from tidemark.broker.handlers import (
    alter_user_scram_credentials,
)
from tidemark.partitions.state_machines.access import users
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)


async def test_what_is_set_is_described_and_what_is_deleted_is_gone(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        assert await alter(node, upsertion("ada"), upsertion("bob", SHA_512)) == {
            "ada": ErrorCode.NONE,
            "bob": ErrorCode.NONE,
        }
        assert await alter(node, upsertion("ada", iterations=16_384)) == {"ada": 0}
        assert await described(node) == {"ada": {SHA_256: 16_384}, "bob": {SHA_512: 4096}}
        changed = await alter(
            node, upsertion("bob"), deletions=[deletion("ada"), deletion("bob", SHA_512)]
        )
        assert changed == {"ada": 0, "bob": 0}
        assert await described(node) == {"bob": {SHA_256: 4096}}
    async with open_node(tmp_path) as node:
        assert await described(node) == {"bob": {SHA_256: 4096}}


async def test_what_is_kept_are_the_keys_of_rfc_5802(tmp_path: Path) -> None:
    """And not the hash that was sent, with which one could log in."""
    salt = b"at least twelve"
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    _, stored_key, server_key, _ = ScramMechanism("SCRAM-SHA-256").make_auth_info(
        "pencil", iteration_count=4096, salt=salt
    )
    async with open_node(tmp_path) as node:
        await alter(node, upsertion("ada", salt=salt, salted_password=salted))
        (kept,) = node.cluster.state.users.credentials("ada").values()
        assert (kept.stored_key, kept.server_key) == (stored_key, server_key)
        assert salted.hex().encode() not in node.cluster.state.encode()


TOO_MUCH = "\N{SNOWMAN}" * 332


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (upsertion("ada", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", salt=bytes(257)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", salted_password=bytes(64)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", SHA_512, salted_password=bytes(32)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("a\nb"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("\N{ROMAN NUMERAL ONE}"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(TOO_MUCH), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ada", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("ada", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
async def test_what_cannot_be_is_refused_and_keeps_nobody_else(
    tmp_path: Path, asked: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        codes = await alter(node, asked, upsertion("bob"))
        assert codes == {asked.name: code, "bob": ErrorCode.NONE}
        assert list(await described(node)) == ["bob"]


async def test_a_user_of_whom_one_change_cannot_be_stays_as_it_was(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        codes = await alter(node, upsertion("ada"), upsertion("ada", SHA_512, salt=b""))
        assert codes == {"ada": ErrorCode.UNACCEPTABLE_CREDENTIAL}
        assert await described(node) == {}


async def test_what_is_not_there_is_not_deleted(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await alter(node, upsertion("ada"))
        gone = [deletion("ada", SHA_512), deletion("eve")]
        assert await alter(node, upsertion("bob"), deletions=gone) == {
            "ada": ErrorCode.RESOURCE_NOT_FOUND,
            "eve": ErrorCode.RESOURCE_NOT_FOUND,
            "bob": ErrorCode.NONE,
        }
        version = node.cluster.state.version
        assert await alter(node, deletions=[deletion("eve")]) == {
            "eve": ErrorCode.RESOURCE_NOT_FOUND
        }
        assert node.cluster.state.version == version, "nothing is written of what changes nothing"


async def test_a_credential_is_changed_once_in_a_request(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await alter(node, upsertion("ada"))
        twice = await alter(node, upsertion("ada"), deletions=[deletion("ada")])
        assert twice == {"ada": ErrorCode.DUPLICATE_RESOURCE}
        twice = await alter(node, upsertion("bob"), upsertion("bob"))
        assert twice == {"bob": ErrorCode.DUPLICATE_RESOURCE}
        twice = await alter(node, deletions=[deletion("ada")] * 2)
        assert twice == {"ada": ErrorCode.DUPLICATE_RESOURCE}
        assert await described(node) == {"ada": {SHA_256: 4096}}


async def test_too_many_users_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_MAX", 1)
    async with open_node(tmp_path) as node:
        await alter(node, upsertion("ada"))
        assert await alter(node, upsertion("bob")) == {"bob": ErrorCode.POLICY_VIOLATION}


async def test_a_request_does_not_change_who_is_in_the_settings(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await alter(node, upsertion("ada", iterations=8192))
    async with open_node(tmp_path, users=(User("ada", "s"), User("bob", "s"))) as node:
        both = {SHA_256: 4096, SHA_512: 4096}
        assert await described(node) == {"ada": both, "bob": both}, "what counts is described"
        for asked in (upsertion("ada"), upsertion("bob")):
            assert await alter(node, asked) == {asked.name: ErrorCode.POLICY_VIOLATION}
        refused = {"bob": ErrorCode.POLICY_VIOLATION}
        assert await alter(node, deletions=[deletion("bob")]) == refused
        left_over = await alter(node, deletions=[deletion("ada")])
        assert left_over == {"ada": ErrorCode.NONE}
        assert len(node.cluster.state.users) == 0


async def test_users_of_the_cluster_are_described_whatever_this_broker_lets_in(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, sasl_enabled_mechanisms=("PLAIN",)) as node:
        await alter(node, upsertion("ada"))
        assert await described(node) == {"ada": {SHA_256: 4096}}


async def test_a_request_that_comes_to_nothing_says_so_of_each_user() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[deletion("ada"), deletion("ada", SHA_512)], upsertions=[upsertion("bob")]
    )
    error = RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads")
    answer = alter_user_scram_credentials.CHANGE.refused(request, error, 0)
    assert [(each.user, each.error_code, each.error_message) for each in answer.results] == [
        ("ada", ErrorCode.NOT_CONTROLLER, "nobody leads"),
        ("bob", ErrorCode.NOT_CONTROLLER, "nobody leads"),
    ]
