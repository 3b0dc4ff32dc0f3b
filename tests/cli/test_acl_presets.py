"""What `tidemark acl allow` gives is what clients need, of users who may do nothing otherwise."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
import trio

from tidemark.cli.main import run
from tidemark.client import (
    Client,
    ClientSettings,
    ErrorCode,
    RequestError,
    Sasl,
    open_client,
)
from tidemark.testing import BlockingCluster
from tidemark.testing.blocking import open_blocking_cluster

T = TypeVar("T")


@pytest.fixture
def guarded() -> Iterator[BlockingCluster]:
    settings = {
        "users": "admin:secret,ada:secret,bo:secret",
        "authorizer.class.name": "StandardAuthorizer",
        "super.users": "User:admin",
        "group.initial.rebalance.delay.ms": "0",
    }
    with open_blocking_cluster(settings=settings) as cluster:
        yield cluster


def admin(guarded: BlockingCluster, *arguments: str) -> int:
    """What `tidemark` ends with that the super user calls."""
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "secret",
    }
    pairs = [word for name, value in options.items() for word in ("-X", f"{name}={value}")]
    return run(["--bootstrap", guarded.bootstrap, *pairs, *arguments])


def as_user(guarded: BlockingCluster, name: str, use: Callable[[Client], Awaitable[T]]) -> T:
    settings = ClientSettings(sasl=Sasl("PLAIN", name, "secret"))

    async def main() -> T:
        async with open_client(guarded.bootstrap, settings=settings) as client:
            return await use(client)

    return trio.run(main)


def refusal(guarded: BlockingCluster, name: str, use: Callable[[Client], Awaitable[T]]) -> str:
    with pytest.raises(RequestError) as caught:
        as_user(guarded, name, use)
    return caught.value.code.name


async def create(client: Client) -> None:
    await client.admin.create_topic("rides", partitions=1)


async def produce(client: Client) -> None:
    async with client.producer() as producer:
        future = await producer.send("rides", b"1")
        await future.wait()


async def produce_in_a_transaction(client: Client) -> None:
    async with (
        client.producer(transactional_id="payments-1") as producer,
        producer.transaction(),
    ):
        await producer.send("rides", b"2")


async def consume(client: Client) -> list[bytes | None]:
    async with client.consumer(
        "rides", group="reports", until_end=True, isolation="read_committed"
    ) as consumer:
        return [record.value async for record in consumer]


def test_a_user_may_do_what_was_allowed_and_nothing_else(guarded: BlockingCluster) -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
    assert refusal(guarded, "ada", create) == denied
    names = ("--topic", "rides", "--transactional-id", "payments-", "--prefixed")
    assert admin(guarded, "acl", "allow", "ada", "--producer", *names) == 0
    as_user(guarded, "ada", create)
    as_user(guarded, "ada", produce)
    as_user(guarded, "ada", produce_in_a_transaction)
    assert refusal(guarded, "ada", consume).endswith("_AUTHORIZATION_FAILED")

    assert refusal(guarded, "bo", consume).endswith("_AUTHORIZATION_FAILED")
    of_reports = ("bo", "--consumer", "--topic", "rides", "--group", "reports")
    assert admin(guarded, "acl", "allow", *of_reports) == 0
    assert as_user(guarded, "bo", consume) == [b"1", b"2"]
    # Who may write to no topic gets no producer id (KIP-679).
    assert refusal(guarded, "bo", produce) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name

    assert admin(guarded, "acl", "deny", "*", "--operation", "write", "--topic", "rides") == 0
    assert refusal(guarded, "ada", produce) == denied
    assert admin(guarded, "acl", "remove", "*", "--yes") == 0
    as_user(guarded, "ada", produce)
    assert admin(guarded, "acl", "remove", *of_reports) == 0
    assert refusal(guarded, "bo", consume).endswith("_AUTHORIZATION_FAILED")
