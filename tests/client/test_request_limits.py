"""What is too large for a broker, which closes the connection and does not say why."""

import pytest
import trio

from tests.client.helpers import numbered, read_values
from tests.testing.scraping import scraped
from tidemark.client import ErrorCode, RequestError, open_client
from tidemark.client.options import ProducerOptions
from tidemark.client.request_limits import NAME
from tidemark.testing import Cluster, open_cluster

TAKES = 200_000
ENDED = 'tidemark_connections_closed_total{reason="bad_input"}'
SMALL = {"socket.request.max.bytes": str(TAKES)}
LARGE: ProducerOptions = {"batch_bytes": 1_000_000, "linger_ms": 50}
"""More than the broker takes, and than there is time for."""


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_record_that_is_too_large_for_the_broker_fails_at_once(idempotent: bool) -> None:
    async with (
        open_cluster(settings=SMALL) as cluster,
        open_client(cluster.bootstrap) as client,
        client.producer(idempotent=idempotent) as producer,
    ):
        await client.admin.create_topic("t", partitions=1)
        await (await producer.send("t", b"before")).wait()
        with trio.fail_after(20):
            large = await producer.send("t", bytes(300_000))
            with pytest.raises(RequestError, match=f"socket.request.max.bytes={TAKES}") as refused:
                await large.wait()
            await (await producer.send("t", b"after")).wait()
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert await read_values(client, "t") == [b"before", b"after"]


async def test_a_batch_that_is_too_large_for_the_broker_is_split() -> None:
    async with open_cluster(settings=SMALL) as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic("t", partitions=1)
        values = [value.ljust(1000) for value in numbered(700)]
        with trio.fail_after(20):
            async with client.producer(**LARGE) as producer:
                futures = [await producer.send("t", value) for value in values]
        assert [future.result().offset for future in futures] == list(range(700))
        assert await read_values(client, "t") == values


async def test_batches_that_are_too_large_together_go_in_several_requests() -> None:
    async with open_cluster(settings=SMALL) as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic("t", partitions=8)
        with trio.fail_after(20):
            async with client.producer(**LARGE) as producer:
                too_large = await producer.send("t", bytes(300_000))
                with pytest.raises(RequestError, match=NAME):
                    await too_large.wait()
                # It is known now, and nothing more ends a connection.
                ended = await refused_by(cluster)
                futures = [await producer.send("t", bytes(60_000), partition=p) for p in range(8)]
        assert [future.result().partition for future in futures] == list(range(8))
        assert ended == await refused_by(cluster)


async def test_a_producer_is_left_while_a_large_request_is_under_way() -> None:
    class LeftError(Exception):
        pass

    async def leave() -> None:
        async with client.producer() as producer:
            await (await producer.send("t", b"before")).wait()
            cluster.pause(1)
            await producer.send("t", bytes(100_000))
            raise LeftError

    async with open_cluster() as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic("t", partitions=1)
        with pytest.raises(LeftError):
            await leave()
        cluster.resume(1)
        assert await read_values(client, "t") in ([b"before"], [b"before", bytes(100_000)])


async def refused_by(cluster: Cluster) -> str:
    """How many connections the broker has ended over what they brought."""
    pages = await scraped(cluster)
    (line,) = [line for line in pages.splitlines() if line.startswith(ENDED)]
    return line
