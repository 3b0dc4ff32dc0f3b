"""The calls about ACLs, against a broker that has an authorizer, and one that has none."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tidemark.client import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Client,
    ErrorCode,
    Operation,
    PatternType,
    Permission,
    RequestError,
    ResourceType,
    open_client,
)
from tidemark.testing import BlockingCluster
from tidemark.testing.blocking import open_blocking_cluster

AUTHORIZER = {"authorizer.class.name": "StandardAuthorizer"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[BlockingCluster]:
    """A broker at which these tests may do everything."""
    settings = {**AUTHORIZER, "super.users": "User:admin;User:ANONYMOUS"}
    with open_blocking_cluster(settings=settings) as cluster:
        yield cluster


@pytest.fixture
async def admin(guarded: BlockingCluster) -> AsyncIterator[Client]:
    async with open_client(guarded.bootstrap) as client:
        yield client


def acl(
    name: str,
    operation: Operation = Operation.READ,
    *,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> Acl:
    """One on a topic."""
    return Acl(
        principal="User:alice",
        permission=permission,
        operation=operation,
        resource_type=ResourceType.TOPIC,
        name=name,
        pattern=pattern,
        host=host,
    )


async def test_acls_are_created_described_and_deleted(admin: Client, topic: str) -> None:
    acls = [
        acl(topic),
        acl(topic, Operation.WRITE, permission=Permission.DENY, host="127.0.0.1"),
        acl(f"{topic}-", Operation.ALL, pattern=PatternType.PREFIXED),
        Acl(
            principal=f"User:{topic}",
            operation=Operation.ALTER_CONFIGS,
            resource_type=ResourceType.CLUSTER,
            name=CLUSTER_NAME,
        ),
    ]
    await admin.admin.create_acls(acls)
    await admin.admin.create_acls(acls[:1])  # It is there already.
    assert set(acls) <= set(await admin.admin.describe_acls())
    for each in acls:
        exactly = AclFilter(
            principal=each.principal,
            permission=each.permission,
            operation=each.operation,
            resource_type=each.resource_type,
            name=each.name,
            pattern=each.pattern,
            host=each.host,
        )
        assert await admin.admin.describe_acls(exactly) == [each]
        assert await admin.admin.delete_acls(exactly) == [each]
        assert await admin.admin.delete_acls(exactly) == []
    assert not set(acls) & set(await admin.admin.describe_acls())


async def test_a_filter_can_ask_what_holds_for_a_name(admin: Client, topic: str) -> None:
    here, prefix = acl(topic), acl(topic[:-1], pattern=PatternType.PREFIXED)
    elsewhere = acl(f"{topic}-b")
    await admin.admin.create_acls([here, prefix, elsewhere])
    holding = AclFilter(resource_type=ResourceType.TOPIC, name=topic, pattern=PatternType.MATCH)
    assert set(await admin.admin.describe_acls(holding)) == {here, prefix}
    named = AclFilter(resource_type=ResourceType.TOPIC, name=topic)
    assert await admin.admin.describe_acls(named) == [here]


async def test_what_several_filters_match_is_deleted_once(admin: Client, topic: str) -> None:
    acls = [acl(topic, operation) for operation in (Operation.READ, Operation.WRITE)]
    await admin.admin.create_acls(acls)
    deleted = await admin.admin.delete_acls(
        AclFilter(name=topic, operation=Operation.READ), AclFilter(name=topic)
    )
    assert len(deleted) == 2
    assert set(deleted) == set(acls)
    assert await admin.admin.delete_acls() == []


async def test_an_acl_that_cannot_be_is_named_with_the_reason(admin: Client, topic: str) -> None:
    with pytest.raises(RequestError, match=rf"User:alice on TOPIC {topic}: .*host") as caught:
        await admin.admin.create_acls([acl(topic, host="localhost")])
    assert caught.value.code is ErrorCode.INVALID_REQUEST


async def refusals(client: Client, topic: str) -> list[RequestError]:
    """What each of the three calls raises."""
    with pytest.raises(RequestError) as described:
        await client.admin.describe_acls()
    with pytest.raises(RequestError) as created:
        await client.admin.create_acls([acl(topic)])
    with pytest.raises(RequestError) as deleted:
        await client.admin.delete_acls(AclFilter(name=topic))
    return [described.value, created.value, deleted.value]


async def test_without_an_authorizer_there_are_no_acls(client: Client, topic: str) -> None:
    refused = await refusals(client, topic)
    assert {each.code for each in refused} == {ErrorCode.SECURITY_DISABLED}
    words = {str(each).split(": ", 2)[2] for each in refused}
    assert len(words) == 1  # the broker's own
    assert all(words)


async def test_acls_are_not_for_everybody_to_see_and_change(topic: str) -> None:
    settings = {**AUTHORIZER, "super.users": "User:admin"}
    with open_blocking_cluster(settings=settings) as cluster:
        async with open_client(cluster.bootstrap) as client:
            refused = await refusals(client, topic)
    assert {each.code for each in refused} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_what_only_newer_brokers_know_is_unknown() -> None:
    for kind in (ResourceType, PatternType, Operation, Permission):
        assert kind(99).name == "UNKNOWN"
