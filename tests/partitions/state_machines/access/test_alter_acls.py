"""ACLs as a part of the cluster's metadata: their command and their place in a snapshot."""

import json

import pytest

from tests.partitions.state_machines.access.tables import ALLOW, DENY, PREFIXED, READ, WRITE, acl
from tidemark.partitions.state_machines.access import table as tables
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.cluster import ClusterState, VersionConflict
from tidemark.partitions.state_machines.cluster_commands import (
    AlterAcls,
    decode_command,
    encode_command,
)
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError

ONE = acl(ALLOW, READ, "\N{SNOWMAN}", PREFIXED, principal="User:CN=ada,O=Tide: Mark", host="::1")
TWO = acl(DENY, WRITE, "*", principal="User:*")


def alter(state: ClusterState, added: tuple[Acl, ...] = (), removed: tuple[Acl, ...] = ()) -> None:
    state.apply(AlterAcls(at_version=state.version, added=added, removed=removed))


def test_a_command_comes_back_from_its_bytes() -> None:
    command = AlterAcls(at_version=3, added=(ONE, TWO), removed=(TWO,))
    back = decode_command(encode_command(command))
    assert back == command
    assert isinstance(back, AlterAcls)
    assert list(map(type, back.added[0])) == list(map(type, ONE))


def test_a_command_is_readable_in_a_dump() -> None:
    body = json.loads(encode_command(AlterAcls(at_version=3, added=(ONE,), removed=())))
    assert body == {
        "do": "AlterAcls",
        "at_version": 3,
        "added": [
            ["TOPIC", "PREFIXED", "\N{SNOWMAN}", "User:CN=ada,O=Tide: Mark", "::1", "READ", "ALLOW"]
        ],
        "removed": [],
    }


@pytest.mark.parametrize("added", [None, 5, [None], ["TOPIC"], [["TOPIC", "LITERAL"]], [[1] * 7]])
def test_bytes_of_no_acls_are_refused(added: object) -> None:
    body = {"do": "AlterAcls", "at_version": 3, "added": added, "removed": []}
    with pytest.raises(StorageError):
        decode_command(json.dumps(body).encode())
    snapshot = json.loads(ClusterState().encode())
    with pytest.raises(StorageError):
        ClusterState.decode(json.dumps(snapshot | {"acls": added}).encode())


def test_a_change_is_made_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ACLS_MAX", 1)
    state = ClusterState()
    alter(state, (ONE,))
    before = state.encode()
    with pytest.raises(RequestError) as refused:
        alter(state, (ONE, TWO))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    with pytest.raises(VersionConflict):
        state.apply(AlterAcls(at_version=0, added=(), removed=(ONE,)))
    assert state.encode() == before
    alter(state, (TWO,), (ONE,))
    assert (list(state.acls), state.version) == ([TWO], 2)


def test_checking_changes_no_acls() -> None:
    state = ClusterState()
    state.check(AlterAcls(at_version=0, added=(ONE,), removed=()))
    assert not list(state.acls)
    assert (state.version, state.acls.revision) == (0, 0)


def test_a_snapshot_keeps_them_in_their_order() -> None:
    state = ClusterState()
    alter(state, (TWO, ONE))
    back = ClusterState.decode(state.encode())
    assert list(back.acls) == [TWO, ONE]
    assert back.encode() == state.encode()
    alter(back, (), (TWO,))
    assert list(back.acls) == [ONE]


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_a_snapshot_of_a_version_without_acls_has_none(number: int) -> None:
    body = json.loads(ClusterState().encode())
    del body["acls"]
    state = ClusterState.decode(json.dumps(body | {"format": number}).encode())
    assert not list(state.acls)
    alter(state, (ONE,))
    assert json.loads(state.encode())["format"] == 6


def test_a_snapshot_has_the_format_of_before_there_were_acls_as_long_as_there_are_none() -> None:
    state = ClusterState()
    assert json.loads(state.encode())["format"] == 5
    alter(state, (ONE,))
    alter(state, (), (ONE,))
    assert json.loads(state.encode())["format"] == 5


def test_a_snapshot_of_a_version_with_acls_that_has_none_is_refused() -> None:
    state = ClusterState()
    alter(state, (ONE,))
    body = json.loads(state.encode())
    del body["acls"]
    with pytest.raises(StorageError):
        ClusterState.decode(json.dumps(body).encode())
