"""ACLs are made, described and deleted with each client's own admin API."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import kafka.admin as kafka_python
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as librdkafka
from kafka import KafkaAdminClient
from kafka.errors import ClusterAuthorizationFailedError, NoError

from tests.clients.acls import TOPIC, Acls
from tests.clients.guests import Login, with_kafka_python, with_librdkafka
from tests.clients.guests.with_commands import tidemark
from tests.clients.guests.with_tidemark import connected
from tidemark.client import (
    Acl,
    AclFilter,
    ErrorCode,
    Operation,
    PatternType,
    Permission,
    RequestError,
)

pytestmark = pytest.mark.usefixtures("acls")


def acl_of_librdkafka(
    name: str, pattern: str, operation: str = "READ", permission: str = "ALLOW"
) -> librdkafka.AclBinding:
    return librdkafka.AclBinding(
        librdkafka.ResourceType.TOPIC,
        name,
        librdkafka.ResourcePatternType[pattern],
        "User:alice",
        "*",
        librdkafka.AclOperation[operation],
        librdkafka.AclPermissionType[permission],
    )


def filter_of_librdkafka(name: str | None, pattern: str) -> librdkafka.AclBindingFilter:
    some: Any = name
    anybody: Any = None  # Any: its types leave out that these may be None.
    return librdkafka.AclBindingFilter(
        librdkafka.ResourceType.TOPIC,
        some,
        librdkafka.ResourcePatternType[pattern],
        anybody,
        anybody,
        librdkafka.AclOperation.ANY,
        librdkafka.AclPermissionType.ANY,
    )


def test_librdkafka(admin: Login, topic: str) -> None:
    client = librdkafka.AdminClient(with_librdkafka.settings_of(admin))
    literal = acl_of_librdkafka(topic, "LITERAL")
    prefixed = acl_of_librdkafka(topic[:-1], "PREFIXED", "WRITE", "DENY")
    other = acl_of_librdkafka(f"{topic}-other", "LITERAL")
    for made in client.create_acls([literal, prefixed, other]).values():
        made.result(10)

    def described(name: str | None, pattern: str) -> set[librdkafka.AclBinding]:
        return set(client.describe_acls(filter_of_librdkafka(name, pattern)).result(10))

    assert described(topic, "MATCH") == {literal, prefixed}
    assert described(topic, "LITERAL") == {literal}
    assert described(None, "ANY") == {literal, prefixed, other}
    wanted = [filter_of_librdkafka(topic, "MATCH"), filter_of_librdkafka("none", "ANY")]
    deleted = client.delete_acls(wanted)
    assert set(deleted[wanted[0]].result(10)) == {literal, prefixed}
    assert deleted[wanted[1]].result(10) == []
    assert described(None, "ANY") == {other}


def test_librdkafka_is_told_what_a_user_may_not_change(acls: Acls, alice: Login) -> None:
    client = librdkafka.AdminClient(with_librdkafka.settings_of(alice))
    (made,) = client.create_acls([acl_of_librdkafka("t", "LITERAL")]).values()
    wanted = filter_of_librdkafka(None, "ANY")
    (deleted,) = client.delete_acls([wanted]).values()
    for refused in (made, deleted):
        with pytest.raises(KafkaException) as caught:
            refused.result(10)
        assert with_librdkafka.code_of(caught.value) == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    acls.allow(alice, TOPIC, "t", Operation.READ)
    # Of DescribeAcls it looks at what was found, and not at the error, which is there.
    assert client.describe_acls(wanted).result(10) == []


@pytest.fixture
def of_kafka_python(admin: Login) -> Iterator[Any]:  # Any: it ships no types
    with closing(KafkaAdminClient(**with_kafka_python.settings_of(admin))) as client:
        yield client


def acl_of_kafka_python(name: str, pattern: str, operation: str = "READ") -> Any:
    return kafka_python.ACL(
        "User:alice",
        "*",
        kafka_python.ACLOperation[operation],
        kafka_python.ACLPermissionType.ALLOW,
        kafka_python.ResourcePattern(
            kafka_python.ResourceType.TOPIC, name, kafka_python.ACLResourcePatternType[pattern]
        ),
    )


def filter_of_kafka_python(name: str | None, pattern: str) -> Any:
    return kafka_python.ACLFilter(
        None,
        None,
        kafka_python.ACLOperation.ANY,
        kafka_python.ACLPermissionType.ANY,
        kafka_python.ResourcePatternFilter(
            kafka_python.ResourceType.TOPIC, name, kafka_python.ACLResourcePatternType[pattern]
        ),
    )


def test_kafka_python(of_kafka_python: Any, topic: str) -> None:
    client = of_kafka_python
    literal = acl_of_kafka_python(topic, "LITERAL")
    prefixed = acl_of_kafka_python(topic[:-1], "PREFIXED", "WRITE")
    other = acl_of_kafka_python(f"{topic}-other", "LITERAL")
    made = client.create_acls([literal, prefixed, other])
    assert (made["succeeded"], made["failed"]) == ([literal, prefixed, other], [])

    def described(name: str | None, pattern: str) -> set[Any]:
        found, error = client.describe_acls(filter_of_kafka_python(name, pattern))
        assert error is NoError
        return set(found)

    assert described(topic, "MATCH") == {literal, prefixed}
    assert described(None, "ANY") == {literal, prefixed, other}
    ((_, deleted, error),) = client.delete_acls([filter_of_kafka_python(topic, "MATCH")])
    assert error is NoError
    assert set(deleted) == {literal, prefixed}
    assert described(None, "ANY") == {other}


def test_kafka_python_is_told_what_a_user_may_not(alice: Login) -> None:
    acl, wanted = acl_of_kafka_python("t", "LITERAL"), filter_of_kafka_python(None, "ANY")
    with closing(KafkaAdminClient(**with_kafka_python.settings_of(alice))) as client:
        with pytest.raises(ClusterAuthorizationFailedError, match="may not DESCRIBE"):
            client.describe_acls(wanted)
        assert client.create_acls([acl])["failed"] == [ClusterAuthorizationFailedError]
        ((_, deleted, error),) = client.delete_acls([wanted])
        assert (deleted, error) == ([], ClusterAuthorizationFailedError)


def test_tidemark(admin: Login, alice: Login, topic: str) -> None:
    literal = Acl(principal="User:alice", operation=Operation.READ, resource_type=TOPIC, name=topic)
    prefixed = Acl(
        principal="User:*",
        permission=Permission.DENY,
        operation=Operation.ALL,
        resource_type=TOPIC,
        name=topic[:-1],
        pattern=PatternType.PREFIXED,
        host="10.0.0.7",
    )
    matching = AclFilter(resource_type=TOPIC, name=topic, pattern=PatternType.MATCH)
    with connected(admin) as client:
        client.run(client.admin.create_acls, [literal, prefixed])
        assert set(client.run(client.admin.describe_acls, matching)) == {literal, prefixed}
        with connected(alice) as hers, pytest.raises(RequestError) as refused:
            hers.run(hers.admin.describe_acls)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert set(client.run(client.admin.delete_acls, matching)) == {literal, prefixed}
        assert client.run(client.admin.describe_acls) == []


def test_the_command(admin: Login, topic: str) -> None:
    tidemark(admin, "acl", "allow", "alice", "--topic", topic, "--operation", "read")
    prefix = ("--topic", topic[:-1], "--prefixed", "--operation", "write")
    tidemark(admin, "acl", "deny", "alice", *prefix)

    def listed() -> set[tuple[str, str]]:
        rows = json.loads(tidemark(admin, "acl", "list", "--topic", topic, "-o", "json"))
        return {(row["permission"], row["pattern"]) for row in rows}

    assert listed() == {("allow", "literal"), ("deny", "prefixed")}
    tidemark(admin, "acl", "remove", "alice", *prefix)
    assert listed() == {("allow", "literal")}
