"""Users as a part of the cluster's metadata: what changes them, their command, their snapshot."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.access.changes_of_users import (
    CHANGES,
    SHA_256,
    SHA_512,
    change,
    credential,
)
from tidemark.partitions.state_machines.access import users
from tidemark.partitions.state_machines.access.users import (
    Credential,
    Mechanism,
    Shape,
    UserChange,
    UserTable,
)
from tidemark.partitions.state_machines.cluster import ClusterState, VersionConflict
from tidemark.partitions.state_machines.cluster_commands import (
    AlterUsers,
    decode_command,
    encode_command,
)
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError

SECRET = b"\1" * 32


def added(name: str, mechanism: Mechanism = SHA_256, iterations: int = 4096) -> UserChange:
    return change(name, mechanism, credential(iterations=iterations))


def alter(state: ClusterState, *changes: UserChange, secret: bytes = SECRET) -> None:
    state.apply(AlterUsers(at_version=state.version, credentials=changes, salt_secret=secret))


def held(table: UserTable) -> dict[tuple[str, Mechanism], Credential]:
    return {
        (name, mechanism): each
        for name in table
        for mechanism, each in table.credentials(name).items()
    }


def test_a_mechanism_is_called_as_sasl_calls_it() -> None:
    assert [each.label for each in Mechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_a_user_is_there_while_it_has_a_credential() -> None:
    state = ClusterState()
    alter(state, added("ada"), added("ada", SHA_512))
    assert list(state.users) == ["ada"]
    alter(state, change("ada"))
    assert list(state.users.credentials("ada")) == [SHA_512]
    alter(state, change("ada", SHA_512))
    assert (list(state.users), len(state.users)) == ([], 0)


def test_what_is_not_there_is_not_removed_and_nothing_else_is_done() -> None:
    state = ClusterState()
    alter(state, added("ada"))
    before = state.encode()
    for missing in (change("ada", SHA_512), change("bob")):
        with pytest.raises(RequestError) as refused:
            alter(state, added("eve"), missing)
        assert refused.value.code is ErrorCode.RESOURCE_NOT_FOUND
    assert state.encode() == before


def test_the_number_of_users_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ClusterState()
    alter(state, added("ada"), added("bob"))
    monkeypatch.setattr(users, "USERS_MAX", 2)
    with pytest.raises(RequestError) as refused:
        alter(state, added("eve"))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    alter(state, added("ada", SHA_512))
    monkeypatch.setattr(users, "USERS_MAX", 1)
    alter(state, added("ada", iterations=8192))  # More are left of an earlier version.
    assert len(ClusterState.decode(state.encode()).users) == 2


def test_what_somebody_looks_into_meanwhile_does_not_change() -> None:
    state = ClusterState()
    alter(state, added("ada"))
    names, of_ada = iter(state.users), state.users.credentials("ada")
    alter(state, change("ada"), added("bob"))
    assert (list(names), list(of_ada)) == (["ada"], [SHA_256])


def test_the_first_secret_is_kept() -> None:
    state = ClusterState()
    assert state.users.salt_secret == b""
    alter(state, added("ada"))
    alter(state, change("ada"), secret=b"\2")
    assert state.users.salt_secret == SECRET
    assert ClusterState.decode(state.encode()).users.salt_secret == SECRET


def test_the_shapes_are_those_that_there_are() -> None:
    state = ClusterState()
    alter(state, added("ada"), added("bob"), added("bob", SHA_512, iterations=8192))
    shapes = {SHA_256: (Shape(4096, 4),), SHA_512: (Shape(8192, 4),)}
    assert state.users.shapes == shapes
    assert ClusterState.decode(state.encode()).users.shapes == shapes
    alter(state, change("bob", SHA_512))
    assert SHA_512 not in state.users.shapes


def test_checking_changes_no_users() -> None:
    state = ClusterState()
    command = AlterUsers(at_version=0, credentials=(added("ada"),), salt_secret=SECRET)
    state.check(command)
    assert (list(state.users), state.users.salt_secret, state.version) == ([], b"", 0)
    state.apply(command)
    with pytest.raises(VersionConflict):
        state.apply(command)


def test_a_command_comes_back_from_its_bytes() -> None:
    command = AlterUsers(
        at_version=3, credentials=(added("\N{SNOWMAN}"), change("ada")), salt_secret=SECRET
    )
    assert decode_command(encode_command(command)) == command


def test_a_dump_shows_whose_and_what_came_of_the_password() -> None:
    command = AlterUsers(at_version=3, credentials=(added("ada"), change("bob")), salt_secret=b"\1")
    assert json.loads(encode_command(command)) == {
        "do": "AlterUsers",
        "at_version": 3,
        "credentials": [
            ["ada", "SCRAM-SHA-256", 4096, b"salt".hex(), "00ff" * 16, "02" * 32],
            ["bob", "SCRAM-SHA-256"],
        ],
        "salt_secret": "01",
    }


def test_no_log_shows_a_key() -> None:
    shown = repr(AlterUsers(at_version=3, credentials=(added("ada"),), salt_secret=SECRET))
    assert "ada" in shown
    assert not any(key in shown for key in ("salt", "stored", "server", "\\x"))


@pytest.mark.parametrize(
    "credentials",
    [None, 5, [None], ["ada"], [["ada"]], [["ada", "MD5"]], [["ada", "SCRAM-SHA-256", 4096]]],
)
def test_bytes_of_no_users_are_refused(credentials: object) -> None:
    body = {"do": "AlterUsers", "at_version": 3, "credentials": credentials, "salt_secret": ""}
    with pytest.raises(StorageError):
        decode_command(json.dumps(body).encode())
    snapshot = json.loads(ClusterState().encode())
    wrong = {"salt_secret": "", "credentials": credentials}
    with pytest.raises(StorageError):
        ClusterState.decode(json.dumps(snapshot | {"users": wrong}).encode())


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_a_snapshot_of_a_version_without_users_has_none(number: int) -> None:
    body = json.loads(ClusterState().encode())
    del body["users"]
    state = ClusterState.decode(json.dumps(body | {"format": number}).encode())
    assert list(state.users) == []
    alter(state, added("ada"))
    assert list(ClusterState.decode(state.encode()).users) == ["ada"]


def test_a_snapshot_has_the_format_of_before_there_were_users_until_there_is_one() -> None:
    state = ClusterState()
    assert json.loads(state.encode())["format"] == 5
    alter(state, added("ada"))
    assert json.loads(state.encode())["format"] == 7
    alter(state, change("ada", SHA_256, None))
    assert json.loads(state.encode())["format"] == 7, "what salts come of is kept"


def test_a_snapshot_of_a_version_with_users_that_has_none_is_refused() -> None:
    state = ClusterState()
    alter(state, added("ada"))
    body = json.loads(state.encode())
    del body["users"]
    with pytest.raises(StorageError):
        ClusterState.decode(json.dumps(body).encode())


@given(st.lists(st.lists(CHANGES, min_size=1, max_size=4), max_size=12))
def test_users_are_what_was_set_and_not_removed(commands: list[list[UserChange]]) -> None:
    state, model = ClusterState(), dict[tuple[str, Mechanism], Credential]()
    for changes in commands:
        missing = [
            each
            for each in changes
            if each.credential is None and (each.name, each.mechanism) not in model
        ]
        if missing:
            with pytest.raises(RequestError):
                alter(state, *changes)
            continue
        alter(state, *changes)
        for each in changes:
            if each.credential is None:
                model.pop((each.name, each.mechanism), None)
            else:
                model[each.name, each.mechanism] = each.credential
        assert held(state.users) == model
        back = ClusterState.decode(state.encode())
        assert (held(back.users), back.encode()) == (model, state.encode())
