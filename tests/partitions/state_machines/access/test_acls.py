"""What a client may say of ACLs: which can be there, and which are meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.access.rules_of_kafka import ACLS, NAMES, is_of_resource
from tidemark.partitions.state_machines.access.acls import (
    NAME_BYTES_MAX,
    Acl,
    acl_of,
    acl_of_plain,
    filter_of,
    plain_acl,
)
from tidemark.protocol.acls import (
    ANY,
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tidemark.protocol.errors import ErrorCode, RequestError

# Any: whatever a test puts in place of one of them.
SAID: dict[str, Any] = {
    "resource_type": 2,
    "pattern": 4,
    "name": "orders",
    "principal": "User:ada",
    "host": "10.0.0.1",
    "operation": 3,
    "permission": 2,
}
MEANT = Acl(
    ResourceType.TOPIC,
    PatternType.PREFIXED,
    "orders",
    "User:ada",
    "10.0.0.1",
    Operation.READ,
    Permission.DENY,
)
SNOWMEN = "\N{SNOWMAN}" * (NAME_BYTES_MAX // 3 + 1)


def test_an_acl_is_what_the_client_said() -> None:
    assert acl_of(**SAID) == MEANT
    assert str(MEANT) == "User:ada from 10.0.0.1 is denied READ on TOPIC prefixed 'orders'"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("resource_type", 0, "no ACL has resource type 0"),
        ("resource_type", ANY, "2 to 7"),
        ("resource_type", 8, "no ACL has resource type 8"),
        ("pattern", 0, "no ACL has pattern type 0"),
        ("pattern", ANY, "3 to 4"),
        ("pattern", PatternType.MATCH, "no ACL has pattern type 2"),
        ("operation", ANY, "no ACL has operation 1"),
        ("operation", 16, "2 to 15"),
        ("operation", -1, "no ACL has operation -1"),
        ("permission", ANY, "no ACL has permission 1"),
        ("permission", 4, "2 to 3"),
        ("name", "", "1 to 1000 bytes"),
        ("name", SNOWMEN, "1 to 1000 bytes"),
        ("name", "orders\n", "no control characters"),
        ("name", "\x9b31m", "no control characters"),
        ("name", "\ud800", "no control characters"),
        ("principal", "", "is no principal"),
        ("principal", "ada", "is no principal"),
        ("principal", ":ada", "is no principal"),
        ("principal", "User:", "is no principal"),
        ("principal", "User:" + SNOWMEN, "is no principal"),
        ("principal", "User:ada\nUser:bob from * is allowed", "is no principal"),
        ("principal", "User:\udc00", "is no principal"),
        ("host", "", "is no host"),
        ("host", "localhost", "is no host"),
        ("host", "10.0.0.0/8", "is no host"),
        ("host", "fe80::1%" + "0" * 10_000, "is no host"),
    ],
)
def test_what_no_acl_can_be_is_refused(field: str, value: int | str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        acl_of(**SAID | {field: value})
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "*"),
        ("name", "\N{SNOWMAN} with spaces: and colons"),
        ("name", "n" * NAME_BYTES_MAX),
        ("principal", "User:*"),
        ("principal", "User:CN=ada,OU=The Ledger, O=Tide: Mark"),
        ("principal", "Group: of spaces "),
        ("host", "*"),
    ],
)
def test_names_are_kept_as_they_are_said(field: str, value: str) -> None:
    made = acl_of(**SAID | {field: value})
    assert made._asdict() == MEANT._asdict() | {field: value}


@pytest.mark.parametrize("name", ["*", "kafka", "kafka-cluster2", "orders"])
def test_the_cluster_has_one_name(name: str) -> None:
    of_cluster = SAID | {"resource_type": ResourceType.CLUSTER}
    assert acl_of(**of_cluster | {"name": CLUSTER_NAME}).name == CLUSTER_NAME
    with pytest.raises(RequestError) as refused:
        acl_of(**of_cluster | {"name": name})
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_forms_of_an_address_are_one_acl_and_one_filter() -> None:
    written = SAID | {"host": "0:0:0:0:0:0:0:1"}
    assert acl_of(**written) == acl_of(**written | {"host": "::1"})
    assert filter_of(**written).matches(acl_of(**written))


WIDEST: dict[str, Any] = {
    "resource_type": ANY,
    "pattern": ANY,
    "name": None,
    "principal": None,
    "host": None,
    "operation": ANY,
    "permission": ANY,
}


@pytest.mark.parametrize("field", ["resource_type", "pattern", "operation", "permission"])
@pytest.mark.parametrize("number", [0, -1, 99])
def test_a_filter_of_what_no_acl_has_is_refused(field: str, number: int) -> None:
    with pytest.raises(RequestError) as refused:
        filter_of(**WIDEST | {field: number})
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("pattern", [ANY, PatternType.MATCH])
def test_a_filter_that_says_nothing_means_all(pattern: int) -> None:
    assert filter_of(**WIDEST | {"pattern": pattern}).matches(MEANT)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("resource_type", ResourceType.GROUP),
        ("pattern", PatternType.LITERAL),
        ("name", "order"),
        ("principal", "User:*"),
        ("host", "*"),
        ("host", "no host"),
        ("operation", Operation.ALL),
        ("permission", Permission.ALLOW),
    ],
)
def test_each_part_of_a_filter_has_to_fit(field: str, other: int | str) -> None:
    assert filter_of(**WIDEST | {field: SAID[field]}).matches(MEANT)
    assert not filter_of(**WIDEST | {field: other}).matches(MEANT)
    assert filter_of(**SAID).matches(MEANT)
    assert not filter_of(**SAID | {field: other}).matches(MEANT)


@given(acl=ACLS, name=st.sampled_from(NAMES))
def test_a_filter_that_matches_means_what_holds_for_that_resource(acl: Acl, name: str) -> None:
    matching = filter_of(**WIDEST | {"pattern": PatternType.MATCH, "name": name})
    assert matching.matches(acl) is is_of_resource(acl, acl.resource_type, name)
    named = filter_of(**WIDEST | {"name": name})
    assert named.matches(acl) is (acl.name == name)


@given(acl=ACLS)
def test_an_acl_comes_back_from_its_plain_form(acl: Acl) -> None:
    back = acl_of_plain(plain_acl(acl))
    assert back == acl
    assert list(map(type, back)) == list(map(type, acl))


@pytest.mark.parametrize(
    "body", [None, [], [1] * 7, plain_acl(MEANT)[:-1], [*plain_acl(MEANT), ""], [["TOPIC"]] * 7]
)
def test_what_is_no_plain_form_is_refused(body: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        acl_of_plain(body)
