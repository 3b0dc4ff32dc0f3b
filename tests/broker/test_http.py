"""Health, readiness and metrics over HTTP, served by hypercorn on trio."""

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
import trio.testing

from tidemark.broker.config import Address
from tidemark.broker.http import Readiness, bind_http, serve_http
from tidemark.broker.http_connections import CONNECTIONS_MAX
from tidemark.broker.metrics import Limits, Metrics, Scrape
from tidemark.broker.metrics.scrape import Page
from tidemark.broker.network.odd_events import LINES_PER_PERIOD


async def get(port: int, path: str, accept: str = "*/*") -> tuple[int, str]:
    """The status and the body of one request."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        lines = [f"GET {path} HTTP/1.1", "host: x", f"accept: {accept}", "connection: close"]
        await stream.send_all("\r\n".join([*lines, "", ""]).encode())
        answer = b"".join([chunk async for chunk in stream]).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


def counted(connections: int) -> Scrape:
    """The scrape of a broker that has had so many connections."""
    metrics = Metrics(topics_max=1)
    metrics.connections_opened.inc(connections)
    return Scrape(metrics, Limits(partitions_max=1, groups_max=1))


@asynccontextmanager
async def serving(scrape: Scrape, readiness: Readiness) -> AsyncIterator[int]:
    bound = bind_http(Address("127.0.0.1", 0))
    port = bound.getsockname()[1]
    stop = trio.Event()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await serve_http(bound, scrape, readiness, wait_stop=stop.wait)

            nursery.start_soon(serve)
            yield port
            stop.set()


async def test_a_broker_is_healthy_before_it_is_ready() -> None:
    readiness = Readiness()
    async with serving(counted(0), readiness) as port:
        assert await get(port, "/healthz") == (200, "ok\n")
        assert await get(port, "/readyz") == (503, "not ready: recovery\n")
        readiness.serving()
        assert await get(port, "/readyz") == (200, "ready\n")
        readiness.stopping()
        assert await get(port, "/readyz") == (503, "not ready: stopping\n")


async def test_metrics_are_the_brokers_and_nothing_else_is_there() -> None:
    async with serving(counted(3), Readiness()) as port:
        status, page = await get(port, "/metrics")
        assert (status, "tidemark_connections_opened_total 3.0" in page) == (200, True)
        _, page = await get(port, "/metrics", accept="application/openmetrics-text")
        assert page.endswith("# EOF\n")
        assert await get(port, "/") == (404, "there are /metrics, /healthz, /readyz\n")


async def test_two_brokers_in_one_process_serve_their_own_metrics() -> None:
    async with serving(counted(1), Readiness()) as one, serving(counted(2), Readiness()) as two:
        assert "tidemark_connections_opened_total 1.0" in (await get(one, "/metrics"))[1]
        assert "tidemark_connections_opened_total 2.0" in (await get(two, "/metrics"))[1]


async def test_so_many_scrapes_at_once_that_each_would_wait_for_long_are_refused() -> None:
    may_go_on = threading.Event()

    class Slow(Scrape):
        def page(self, accept: str) -> Page:
            may_go_on.wait(20)
            return super().page(accept)

    slow = Slow(Metrics(topics_max=1), Limits(partitions_max=1, groups_max=1))
    statuses = list[int]()
    async with serving(slow, Readiness()) as port:

        async def scrape() -> None:
            statuses.append((await get(port, "/metrics"))[0])
            if len(statuses) == 30 - 17:  # one is being made, sixteen wait
                may_go_on.set()

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(scrape)
    assert sorted(statuses) == [200] * 17 + [503] * 13


async def test_a_server_that_nobody_asked_stops_like_one_that_was() -> None:
    with trio.fail_after(20), bind_http(Address("127.0.0.1", 0)) as bound:
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await serve_http(bound, counted(0), Readiness(), wait_stop=trio.sleep_forever)

            nursery.start_soon(serve)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert bound.fileno() == -1


async def test_a_client_that_connects_before_the_server_is_there_is_answered() -> None:
    bound = bind_http(Address("127.0.0.1", 0))
    early = socket.create_connection(bound.getsockname())
    early.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    stop = trio.Event()
    with early, trio.fail_after(30):
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await serve_http(bound, counted(0), Readiness(), wait_stop=stop.wait)

            nursery.start_soon(serve)
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(early))
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
            stop.set()


async def test_what_a_client_makes_hypercorn_raise_ends_its_own_connection() -> None:
    """It ended the broker: the settings of HTTP/2 are no base64."""
    lines = ["GET / HTTP/1.1", "host: x", "connection: upgrade, http2-settings", "upgrade: h2c"]
    asked = "\r\n".join([*lines, "http2-settings: A", "", ""]).encode()
    async with serving(counted(0), Readiness()) as port:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(asked)
            async for _ in stream:
                pass
        assert (await get(port, "/healthz"))[0] == 200


async def test_what_hypercorn_logs_of_clients_is_a_few_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of a WebSocket that goes on while it is refused, say, which is an error to it."""
    lines = ["GET / HTTP/1.1", "host: x", "connection: upgrade", "upgrade: websocket"]
    keys = ["sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="]
    asked = "\r\n".join([*lines, *keys, "", "?"]).encode()
    async with serving(counted(0), Readiness()) as port:
        for _ in range(2 * LINES_PER_PERIOD):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(asked)
                async for _ in stream:
                    pass
    logged = [record for record in caplog.records if "ASGI" in record.message]
    assert len(logged) == LINES_PER_PERIOD


async def test_who_does_not_read_what_it_has_asked_for_does_not_hold_up_the_end() -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        async with serving(counted(0), Readiness()) as port:
            client.connect(("127.0.0.1", port))
            client.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n" * 1000)
            assert (await get(port, "/healthz"))[0] == 200
            await trio.testing.wait_all_tasks_blocked(0.5)


async def test_the_oldest_connection_makes_room_for_the_newest() -> None:
    """HTTP/2 keeps the silent."""
    begun = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    async with serving(counted(0), Readiness()) as port, AsyncExitStack() as clients:
        streams = []
        for _ in range(CONNECTIONS_MAX + 2):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            streams.append(await clients.enter_async_context(stream))
            await stream.send_all(begun)
            assert await stream.receive_some()
        assert (await get(port, "/healthz"))[0] == 200
        for stream in streams[:3]:
            async for _ in stream:  # until the broker hangs up
                pass
        with trio.move_on_after(0.1):
            async for _ in streams[3]:
                pass
            pytest.fail("it is not among the oldest")


def test_a_port_in_use_is_an_os_error() -> None:
    with bind_http(Address("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        bind_http(Address("127.0.0.1", taken.getsockname()[1]))
