"""The calls about users, against a broker that asks who a client is."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tidemark.client import (
    Client,
    ClientSettings,
    ErrorCode,
    RequestError,
    Sasl,
    UserDescription,
    open_client,
)
from tidemark.protocol.errors import ConfigError
from tidemark.testing import BlockingCluster
from tidemark.testing.blocking import open_blocking_cluster

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def guarded() -> Iterator[BlockingCluster]:
    with open_blocking_cluster(settings={"users": "admin:secret"}) as cluster:
        yield cluster


def logged_in(
    cluster: BlockingCluster, name: str, password: str, mechanism: str = SHA_256
) -> AbstractAsyncContextManager[Client]:
    settings = ClientSettings(sasl=Sasl(mechanism, name, password))
    return open_client(cluster.bootstrap, settings=settings)


@pytest.fixture
async def admin(guarded: BlockingCluster) -> AsyncIterator[Client]:
    async with logged_in(guarded, "admin", "secret") as client:
        yield client


async def iterations(client: Client) -> dict[str, dict[str, int]]:
    return {each.name: dict(each.iterations) for each in await client.admin.describe_users()}


async def is_let_in(
    cluster: BlockingCluster, name: str, password: str, mechanism: str = SHA_256
) -> bool:
    try:
        async with logged_in(cluster, name, password, mechanism) as client:
            await client.admin.list_topics()
    except RequestError as error:
        if error.code is not ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise
        return False
    return True


async def test_a_user_is_set_described_and_deleted(admin: Client, topic: str) -> None:
    await admin.admin.set_user(topic, "pw", iterations=8192)
    found = [each for each in await admin.admin.describe_users() if each.name == topic]
    assert found == [UserDescription(name=topic, iterations={SHA_256: 8192, SHA_512: 8192})]
    await admin.admin.delete_user(topic, mechanisms=[SHA_512])
    assert (await iterations(admin))[topic] == {SHA_256: 8192}
    await admin.admin.delete_user(topic)
    assert topic not in await iterations(admin)


@pytest.mark.parametrize("password", ["pw", "an ünusual password", "p" * 1000])
async def test_who_is_set_logs_in_until_it_is_deleted(
    guarded: BlockingCluster, admin: Client, topic: str, password: str
) -> None:
    assert not await is_let_in(guarded, topic, password)
    await admin.admin.set_user(topic, password)
    for mechanism in (SHA_256, SHA_512):
        assert await is_let_in(guarded, topic, password, mechanism)
    assert not await is_let_in(guarded, topic, password, "PLAIN")
    async with logged_in(guarded, topic, password) as client:
        await admin.admin.set_user(topic, "another")
        assert not await is_let_in(guarded, topic, password)
        assert await is_let_in(guarded, topic, "another")
        await admin.admin.delete_user(topic)
        assert not await is_let_in(guarded, topic, "another")
        await client.admin.list_topics()  # Who has logged in before stays.


async def test_a_password_by_another_mechanism_is_valid_still(
    guarded: BlockingCluster, admin: Client, topic: str
) -> None:
    await admin.admin.set_user(topic, "old")
    await admin.admin.set_user(topic, "new", mechanisms=[SHA_256])
    assert await is_let_in(guarded, topic, "new", SHA_256)
    assert await is_let_in(guarded, topic, "old", SHA_512)


async def test_a_user_of_the_settings_is_described_and_not_changed(admin: Client) -> None:
    assert (await iterations(admin))["admin"] == {SHA_256: 4096, SHA_512: 4096}
    with pytest.raises(RequestError, match="it is changed there") as refused:
        await admin.admin.set_user("admin", "mine")
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    with pytest.raises(RequestError, match="it is changed there"):
        await admin.admin.delete_user("admin")


async def test_who_is_not_there_is_not_deleted(admin: Client, topic: str) -> None:
    for mechanisms in ((), (SHA_256,)):
        with pytest.raises(RequestError, match=topic) as refused:
            await admin.admin.delete_user(topic, mechanisms=mechanisms)
        assert refused.value.code is ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("password", ["", "\0", "a\nb", "\N{SOFT HYPHEN}"])
async def test_what_is_no_password_is_refused(admin: Client, topic: str, password: str) -> None:
    with pytest.raises(ConfigError, match="control characters"):
        await admin.admin.set_user(topic, password)


async def test_a_user_and_a_password_are_text(admin: Client, topic: str) -> None:
    wrong: Any
    for wrong in (5, b"secret", None):
        with pytest.raises(TypeError, match="a password is a str, not of type"):
            await admin.admin.set_user(topic, wrong)
        with pytest.raises(TypeError, match="a user's name is a str, not"):
            await admin.admin.set_user(wrong, "secret")


async def test_what_no_broker_takes_is_not_sent(admin: Client, topic: str) -> None:
    for number in (4095, 16_385, 2**31):
        with pytest.raises(ConfigError, match="brokers take 4096 to 16384"):
            await admin.admin.set_user(topic, "pw", iterations=number)
    with pytest.raises(ConfigError, match="there are SCRAM-SHA-256 and SCRAM-SHA-512"):
        await admin.admin.set_user(topic, "pw", mechanisms=["PLAIN"])
    with pytest.raises(RequestError) as refused:
        await admin.admin.set_user("a\tb", "pw")
    assert refused.value.code is ErrorCode.UNACCEPTABLE_CREDENTIAL


async def test_a_listener_asks_for_scram_before_there_is_anybody() -> None:
    """Another one lets in who makes the first user."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
    with open_blocking_cluster(settings=settings) as cluster:
        async with open_client(cluster.bootstrap) as client:
            await client.admin.set_user("ada", "pw")
            assert await iterations(client) == {"ada": {SHA_256: 4096, SHA_512: 4096}}
            await client.admin.list_topics()  # This listener asks nobody, whoever there is.
