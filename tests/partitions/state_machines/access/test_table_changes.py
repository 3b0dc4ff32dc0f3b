"""Which ACLs are there: what comes, what goes, how many may be there."""

import pytest

from tests.partitions.state_machines.access.tables import (
    ADA,
    ALLOW,
    DENY,
    PREFIXED,
    READ,
    WRITE,
    acl,
    may,
    table_of,
)
from tidemark.partitions.state_machines.access import table as tables
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.protocol.errors import ErrorCode, RequestError

ONE, TWO, THREE = (acl(ALLOW, READ, name) for name in ("one", "two", "three"))


def test_what_is_there_is_not_added_again_and_what_is_not_there_is_not_removed() -> None:
    table = table_of(ONE, TWO, ONE)
    table.alter([TWO, THREE, THREE], [acl(DENY, READ, "one")])()
    assert list(table) == [ONE, TWO, THREE]
    table.alter((), [TWO, TWO])()
    assert list(table) == [ONE, THREE]
    assert TWO not in table


def test_what_is_removed_and_added_at_once_is_there() -> None:
    table = table_of(ONE, TWO)
    table.alter([ONE], [ONE, TWO])()
    assert list(table) == [ONE]
    assert may(table, name="one")


def test_whoever_follows_the_changes_sees_each() -> None:
    table = AclTable()
    seen = [table.revision]
    for added, removed in (([ONE], []), ([TWO], [ONE]), ([], [TWO])):
        carry_out = table.alter(added, removed)
        assert table.revision == seen[-1], "it is only decided"
        carry_out()
        seen.append(table.revision)
    assert seen == sorted({*seen})


def refusal(table: AclTable, added: list[Acl], removed: list[Acl]) -> ErrorCode:
    before = list(table)
    with pytest.raises(RequestError) as refused:
        table.alter(added, removed)
    assert list(table) == before
    return refused.value.code


def test_the_number_of_acls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ACLS_MAX", 2)
    table = table_of(ONE, TWO)
    assert refusal(table, [THREE], []) is ErrorCode.POLICY_VIOLATION
    assert refusal(table, [ONE, THREE], [ONE]) is ErrorCode.POLICY_VIOLATION
    table.alter([TWO, TWO], ())()
    table.alter([THREE], [ONE])()
    assert list(table) == [TWO, THREE]


def test_the_bytes_of_all_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "NAMES_BYTES_MAX", len("one\N{SNOWMAN}".encode()) + len(ADA))
    wide, longer = (acl(ALLOW, READ, f"{name}\N{SNOWMAN}") for name in ("one", "four"))
    table = table_of(wide)
    assert refusal(table, [ONE], []) is ErrorCode.POLICY_VIOLATION
    assert refusal(table, [longer], [wide]) is ErrorCode.POLICY_VIOLATION
    for _ in range(3):
        table.alter([ONE], [wide])()
        table.alter([wide], [ONE])()
    assert refusal(AclTable.of(table.body()), [ONE], []) is ErrorCode.POLICY_VIOLATION


def test_what_was_allowed_more_by_an_earlier_version_can_be_made_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(ONE, TWO, THREE)
    monkeypatch.setattr(tables, "ACLS_MAX", 1)
    monkeypatch.setattr(tables, "NAMES_BYTES_MAX", 1)
    table.alter((), [ONE])()
    table.alter([ONE], [TWO])()
    assert list(table) == [THREE, ONE]


def test_they_come_back_from_a_snapshot_in_their_order() -> None:
    acls = [acl(DENY, WRITE, "t", PREFIXED, host="::1"), TWO, ONE]
    table = AclTable.of(table_of(*acls).body())
    assert list(table) == acls
    assert may(table, name="one")
