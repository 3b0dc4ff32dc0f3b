"""Clients that are over a quota, and are not read for a while."""

import time
from typing import Any

import pytest
import trio

from tests.broker.network.serving import HOLD_BACK_SECONDS, SETTINGS, open_serving, request, settle
from tests.broker.quotas.metering import Cluster, meter, quotas_of
from tidemark.protocol.frames import ApiCodec


async def test_a_client_that_is_held_back_is_answered_at_once_and_not_read_until_then() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        began_at = trio.current_time()
        await client.send(request("hold back", 1) + request("echo", 2))
        assert await client.read_number() == 1
        await client.ask("echo", 3)
        assert serving.script.seen == [1]
        assert trio.current_time() - began_at < HOLD_BACK_SECONDS
        assert serving.metrics.quotas.held_back == 1
        assert [await client.read_number() for _ in range(2)] == [2, 3]
        assert trio.current_time() - began_at >= HOLD_BACK_SECONDS
        assert serving.metrics.quotas.held_back == 0


async def test_a_client_that_is_held_back_goes_on_when_quotas_change() -> None:
    async with open_serving(SETTINGS) as serving:
        held, other = await serving.connect(), await serving.connect()
        began_at = trio.current_time()
        await held.send(request("hold back", 1) + request("echo", 2))
        await other.ask("echo", 3)
        assert [await held.read_number(), await other.read_number()] == [1, 3]
        serving.connections.let_go_on()
        assert await held.read_number() == 2
        assert trio.current_time() - began_at < HOLD_BACK_SECONDS
        assert serving.metrics.quotas.held_back == 0


async def test_a_client_that_is_held_back_may_go() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("hold back", 1)
        assert await client.read_number() == 1
        client.stream.socket.close()
        await settle()
        assert (len(serving.connections), serving.metrics.quotas.held_back) == (0, 0)


async def test_a_broker_that_stops_reads_nobody_who_was_held_back() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(request("hold back", 1) + request("echo", 2))
        assert await client.read_number() == 1
        serving.connections.stop_reading()
        await trio.sleep(2 * HOLD_BACK_SECONDS)
        assert serving.script.seen == [1]


async def test_the_brokers_time_is_that_of_decoding_and_encoding_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenth of a second is free, and each of the two takes more than half of that."""

    def slow(name: str) -> None:
        plain = getattr(ApiCodec, name)

        def slowly(*arguments: Any) -> Any:  # Any: as whichever it is
            time.sleep(0.06)
            return plain(*arguments)

        monkeypatch.setattr(ApiCodec, name, slowly)

    cluster = Cluster()
    cluster.alter(("client-id", "test"), request_percentage=1)
    async with open_serving(SETTINGS) as serving:
        quotas = serving.connections.dispatcher._quotas = quotas_of(cluster)
        client = await serving.connect()
        slow("decode_request")
        slow("encode_response")
        await client.ask("echo", 1)
        assert await client.read_number() == 1
        bucket = meter(quotas, "test").request
        assert bucket is not None
        assert bucket.debt_seconds(trio.current_time()) > 0
