"""What connections share: how many there may be, descriptors, memory, and the end of the broker."""

import errno
import os
import resource
import struct
from collections.abc import Iterator
from contextlib import suppress

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.broker.network.serving import (
    SETTINGS,
    Client,
    encoded,
    open_serving,
    request,
    settle,
)
from tidemark.broker.config import Address, Endpoint
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.broker.network.accepting import PAUSE_SECONDS, Accepting, BoundListener
from tidemark.broker.network.connections import ADMISSION_SECONDS
from tidemark.broker.network.reactor import Reactor
from tidemark.protocol.messages.api_versions import ApiVersionsRequest


async def test_an_idle_connection_is_closed_and_one_that_waits_for_us_is_not(
    autojump_clock: MockClock,
) -> None:
    settings = attrs.evolve(SETTINGS, connections_max_idle_ms=60_000)
    async with open_serving(settings) as serving:
        idle, waiting = await serving.connect(), await serving.connect()
        await waiting.ask("park", 1)
        for _ in range(100):
            await trio.sleep(1)
        assert await idle.is_closed()
        assert serving.metrics.connections_closed[ConnectionEnd.IDLE].value == 1
        serving.script.answer(1)
        assert await waiting.read_number() == 1


async def test_who_never_proves_who_it_is_has_to_go_and_who_has_nothing_to_prove_stays(
    autojump_clock: MockClock,
) -> None:
    guarded = Endpoint("SASL_PLAINTEXT", Address("127.0.0.1", 0))
    async with (
        open_serving(attrs.evolve(SETTINGS, listeners=(guarded,))) as asking,
        open_serving(SETTINGS) as serving,
    ):
        stranger, other = await asking.connect(), await serving.connect()
        began_at = trio.current_time()
        while asking.metrics.connections_closed[ConnectionEnd.SLOW].value == 0:
            assert trio.current_time() < began_at + 2 * ADMISSION_SECONDS
            with suppress(trio.BrokenResourceError):
                await stranger.send(encoded(ApiVersionsRequest(), 0))
            await trio.sleep(1)
        assert trio.current_time() >= began_at + ADMISSION_SECONDS
        await other.ask("echo", 1)
        assert await other.read_number() == 1


async def test_one_connection_too_many_is_closed_at_once() -> None:
    async with open_serving(attrs.evolve(SETTINGS, max_connections=1)) as serving:
        first, second = await serving.connect(), await serving.connect()
        assert await second.is_closed()
        await first.ask("echo", 1)
        assert await first.read_number() == 1
        assert serving.metrics.connections_closed[ConnectionEnd.TOO_MANY].value == 1


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """How many more descriptors this process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    yield in_use
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_without_descriptors_a_client_is_refused_and_the_others_are_served(
    few_descriptors: int,
) -> None:
    async with open_serving(SETTINGS) as serving:
        client, outsider = await serving.connect(), trio.socket.socket()
        await client.ask("echo", 0)
        assert await client.read_number() == 0
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = list[int]()
        resource.setrlimit(resource.RLIMIT_NOFILE, (few_descriptors + 20, hard))
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            await outsider.connect(serving.address)
            assert await outsider.recv(1) == b""
            await client.ask("echo", 1)
            assert await client.read_number() == 1
            assert serving.metrics.connections_closed[ConnectionEnd.TOO_MANY].value == 1
        finally:
            outsider.close()
            for descriptor in taken:
                os.close(descriptor)


async def test_without_even_the_spare_descriptor_a_client_waits_and_the_loop_does_not_spin(
    few_descriptors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, accept = list[float](), Accepting._accept

    def count(accepting: Accepting, bound: BoundListener) -> None:
        looks.append(trio.current_time())
        accept(accepting, bound)

    monkeypatch.setattr(Accepting, "_accept", count)
    async with open_serving(SETTINGS) as serving:
        outsider = trio.socket.socket()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = list[int]()
        resource.setrlimit(resource.RLIMIT_NOFILE, (few_descriptors + 20, hard))
        try:
            serving.connections._accepting._free_spare()
            with suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            await outsider.connect(serving.address)
            await trio.sleep(1.5 * PAUSE_SECONDS)
            assert 1 <= len(looks) <= 3
            for descriptor in taken:
                os.close(descriptor)
            taken.clear()
            with trio.fail_after(10 * PAUSE_SECONDS):
                await outsider.send(request("echo", 7))
                assert await Client(trio.SocketStream(outsider)).read_number() == 7
        finally:
            outsider.close()
            for descriptor in taken:
                os.close(descriptor)


async def test_a_client_that_the_kernel_cannot_watch_is_hung_up_on_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_serving(SETTINGS) as serving:
        before = await serving.connect()
        await before.ask("echo", 1)
        assert await before.read_number() == 1

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as full:
            full.setattr(Reactor, "add", refuse)
            assert await (await serving.connect()).is_closed()
        assert serving.metrics.connections_closed[ConnectionEnd.ERROR].value == 1
        for client in (before, await serving.connect()):
            await client.ask("echo", 2)
            assert await client.read_number() == 2


async def test_who_holds_memory_and_sends_nothing_gives_way_to_who_needs_it(
    autojump_clock: MockClock,
) -> None:
    settings = attrs.evolve(
        SETTINGS, queued_max_request_bytes=400_000, socket_request_max_bytes=300_000
    )
    async with open_serving(settings) as serving:
        stalled, honest = await serving.connect(), await serving.connect()
        await stalled.send(struct.pack(">i", 290_000) + bytes(200_000))
        await trio.sleep(1)
        padding = b"x" * 30_000
        large = b"".join(request("echo " + padding.decode(), n) for n in range(3))
        whole = struct.pack(">i", 290_000) + bytes(290_000)
        await honest.send(large)
        assert [await honest.read_number() for _ in range(3)] == [0, 1, 2]
        await honest.send(whole)
        for _ in range(30):
            await trio.sleep(1)
        assert await stalled.is_closed()
        assert serving.metrics.connections_closed[ConnectionEnd.SLOW].value == 1
        # What the honest one sent is no request; that it was found out shows it was received.
        assert await honest.is_closed()
        assert serving.metrics.bad_input[BadInput.UNSUPPORTED_VERSION].value == 1


async def test_of_those_that_wait_for_memory_only_one_has_to_go(autojump_clock: MockClock) -> None:
    settings = attrs.evolve(
        SETTINGS, queued_max_request_bytes=400_000, socket_request_max_bytes=300_000
    )
    async with open_serving(settings) as serving:
        clients = [await serving.connect(), await serving.connect()]
        frame = struct.pack(">i", 290_000) + bytes(290_000)
        for client in clients:
            await client.send(frame[:200_000])
            await trio.sleep(1)
        for client in clients:
            await client.send(frame[200_000:])
        for _ in range(60):
            await trio.sleep(1)
        closed = serving.metrics.connections_closed
        assert closed[ConnectionEnd.SLOW].value == closed[ConnectionEnd.BAD_INPUT].value == 1


async def test_a_stopping_broker_answers_what_has_come_and_takes_no_more() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 1)
        await settle()
        serving.connections.stop_accepting()
        serving.connections.stop_reading()
        await client.ask("echo", 2)
        await settle()
        assert serving.script.seen == [1]
        with trio.move_on_after(0.02) as waited:
            await serving.connections.wait_drained()
        assert waited.cancelled_caught
        serving.script.answer(1)
        with trio.fail_after(20):
            await serving.connections.wait_drained()
        assert await client.read_number() == 1
        with pytest.raises(ConnectionRefusedError):
            await serving.connect()
