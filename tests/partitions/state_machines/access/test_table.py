"""Who may do what: what follows from the ACLs there are, and which may be there."""

import pytest

from tests.partitions.state_machines.access.tables import (
    ADA,
    ALL,
    ALLOW,
    BOB,
    DENY,
    ELSEWHERE,
    EVERYBODY,
    HERE,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    acl,
    may,
    table_of,
)
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.protocol.acls import Operation, PatternType, ResourceType


def may_some(table: AclTable, operation: Operation = WRITE, *, otherwise: bool = False) -> bool:
    return table.allows_some(ADA, HERE, operation, ResourceType.TOPIC, otherwise=otherwise)


@pytest.mark.parametrize("otherwise", [False, True])
def test_what_no_acl_is_about_is_as_the_caller_says(otherwise: bool) -> None:
    table = table_of(
        acl(ALLOW, READ, "orders-eu"),
        acl(ALLOW, READ, "z", PREFIXED),
        acl(ALLOW, READ, "orders", resource_type=ResourceType.GROUP),
    )
    assert may(table, otherwise=otherwise) is otherwise


@pytest.mark.parametrize(
    "other",
    [
        acl(ALLOW, READ, "orders", principal=BOB),
        acl(ALLOW, READ, "*", principal=BOB),
        acl(DENY, READ, "ord", PREFIXED, principal=BOB),
        acl(ALLOW, READ, "orders", host=ELSEWHERE),
        acl(DENY, WRITE, "orders"),
    ],
    ids=str,
)
def test_what_any_acl_is_about_is_allowed_to_nobody_else(other: Acl) -> None:
    table = table_of(other)
    assert not may(table, otherwise=True)
    table.alter((), [other])()
    assert may(table, otherwise=True)


@pytest.mark.parametrize("operation", [READ, ALL])
@pytest.mark.parametrize("principal", [ADA, EVERYBODY])
@pytest.mark.parametrize("host", [HERE, "*"])
@pytest.mark.parametrize(
    ("name", "pattern"),
    [("orders", LITERAL), ("*", LITERAL), ("ord", PREFIXED), ("orders", PREFIXED)],
)
def test_an_acl_that_denies_outweighs_all_that_allow(
    operation: Operation, principal: str, host: str, name: str, pattern: PatternType
) -> None:
    allowing = [acl(ALLOW, READ, "orders", host=HERE), acl(ALLOW, ALL, "*", principal=EVERYBODY)]
    denying = acl(DENY, operation, name, pattern, principal=principal, host=host)
    assert may(table_of(*allowing))
    assert not may(table_of(*allowing, denying), otherwise=True)
    assert not may(table_of(denying, *allowing), otherwise=True)


@pytest.mark.parametrize(
    "other",
    [
        acl(DENY, READ, "orders", principal=BOB),
        acl(DENY, READ, "orders", host=ELSEWHERE),
        acl(DENY, READ, "orders-eu"),
        acl(DENY, READ, "orders-", PREFIXED),
        acl(DENY, READ, "rders", PREFIXED),
        acl(DENY, READ, "*", PREFIXED),
        acl(DENY, WRITE, "orders"),
        acl(DENY, READ, "orders", resource_type=ResourceType.GROUP),
    ],
    ids=str,
)
def test_what_is_denied_to_others_or_of_others_is_not_denied(other: Acl) -> None:
    assert may(table_of(acl(ALLOW, READ, "orders"), other))


IMPLIED = {
    Operation.DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


@pytest.mark.parametrize("allowed", Operation)
def test_what_is_allowed_implies_that_it_is_looked_at(allowed: Operation) -> None:
    table = table_of(acl(ALLOW, allowed, "orders"))
    for asked in Operation:
        is_enough = allowed in {asked, ALL} or allowed in IMPLIED.get(asked, ())
        assert may(table, asked) is may_some(table, asked) is is_enough


@pytest.mark.parametrize("denied", Operation)
def test_what_is_denied_implies_nothing(denied: Operation) -> None:
    table = table_of(acl(ALLOW, ALL, "orders"), acl(DENY, denied, "orders"))
    for asked in Operation:
        assert may(table, asked) is may_some(table, asked) is (denied not in {asked, ALL})


def test_a_prefix_is_found_whatever_other_prefixes_came_and_went() -> None:
    here, longer = acl(ALLOW, READ, "ord", PREFIXED), acl(ALLOW, READ, "orders-e", PREFIXED)
    as_long = acl(ALLOW, READ, "abc", PREFIXED)
    table = table_of(here, longer, as_long)
    table.alter((), [as_long])()
    assert may(table)
    assert may(table, name="orders-eu")
    table.alter([as_long], [here])()
    assert not may(table)
    assert may(table, name="orders-eu")


@pytest.mark.parametrize(("principal", "host"), [(BOB, "*"), (ADA, HERE)])
def test_what_is_removed_leaves_others_of_its_resource(principal: str, host: str) -> None:
    gone = acl(ALLOW, READ, "orders")
    others = [
        gone._replace(principal=principal, host=host),
        gone._replace(operation=WRITE),
        gone._replace(operation=Operation.ALTER, permission=DENY),
    ]
    table = table_of(gone, *others)
    table.alter((), [gone])()
    assert list(table) == others
    assert may(table, WRITE)
    assert may(table, principal=principal)
    assert not may(table, host=ELSEWHERE)


@pytest.mark.parametrize(
    ("acls", "answer"),
    [
        ([], False),
        ([acl(ALLOW, WRITE, "a")], True),
        ([acl(ALLOW, WRITE, "a", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "a", principal=BOB)], False),
        ([acl(ALLOW, WRITE, "a", host=ELSEWHERE)], False),
        ([acl(ALLOW, WRITE, "a", resource_type=ResourceType.GROUP)], False),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, WRITE, "a")], False),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, ALL, "a", principal=EVERYBODY)], False),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, WRITE, "a", principal=BOB)], True),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, READ, "a")], True),
        ([acl(ALLOW, WRITE, "ab"), acl(DENY, WRITE, "a", PREFIXED)], False),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, WRITE, "ab", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "a", PREFIXED), acl(DENY, WRITE, "a")], True),
        ([acl(ALLOW, WRITE, "a", PREFIXED), acl(DENY, WRITE, "a", PREFIXED)], False),
        ([acl(ALLOW, WRITE, "ab", PREFIXED), acl(DENY, WRITE, "a", PREFIXED)], False),
        ([acl(ALLOW, WRITE, "a", PREFIXED), acl(DENY, WRITE, "ab", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "*"), acl(DENY, WRITE, "a"), acl(DENY, ALL, "b", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "*"), acl(DENY, WRITE, "*")], False),
        ([acl(ALLOW, WRITE, "*"), acl(DENY, WRITE, "*", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "*", PREFIXED), acl(DENY, WRITE, "*", PREFIXED)], False),
        ([acl(ALLOW, WRITE, "a"), acl(DENY, WRITE, "*")], False),
    ],
)
def test_something_is_allowed_unless_all_that_is_allowed_is_denied(
    acls: list[Acl], answer: bool
) -> None:
    assert may_some(table_of(*acls)) is answer


@pytest.mark.parametrize(
    ("acls", "answer"),
    [
        ([], True),
        ([acl(ALLOW, WRITE, "a", principal=BOB)], True),
        ([acl(DENY, WRITE, "a", PREFIXED)], True),
        ([acl(ALLOW, WRITE, "*", PREFIXED, principal=BOB)], True),
        ([acl(DENY, WRITE, "*")], False),
        ([acl(ALLOW, WRITE, "*", principal=BOB)], False),
        ([acl(ALLOW, WRITE, "*", principal=BOB), acl(ALLOW, WRITE, "a")], True),
    ],
)
def test_a_resource_without_acls_is_something_unless_all_have_some(
    acls: list[Acl], answer: bool
) -> None:
    assert may_some(table_of(*acls), otherwise=True) is answer
