"""What passes through a relay, and what does not while a wire is cut."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import trio
from trio.testing import open_stream_to_socket_listener

from tests.chaos.relay import Passage, Wire

_SOON = 0.05


class Sides(NamedTuple):
    """Two machines that are connected, the wires between them, and what is between the two."""

    a: trio.SocketStream
    b: trio.SocketStream
    there: Wire
    back: Wire
    passage: Passage


@asynccontextmanager
async def connected() -> AsyncIterator[Sides]:
    there, back = Wire(), Wire()
    a, caller = await _pair()
    b, callee = await _pair()
    passage = Passage(caller, callee, there, back)

    async def run() -> None:
        async with caller, callee:
            await passage.run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        async with a, b:
            yield Sides(a, b, there, back, passage)
        nursery.cancel_scope.cancel()


async def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        stream = await open_stream_to_socket_listener(listener)
        return stream, await listener.accept()


async def said_soon(stream: trio.SocketStream) -> bytes | None:
    """What arrives within a moment; `None` if nothing does."""
    with trio.move_on_after(_SOON):
        return bytes(await stream.receive_some(100))
    return None


async def test_both_directions_pass() -> None:
    async with connected() as sides:
        await sides.a.send_all(b"hello")
        assert await said_soon(sides.b) == b"hello"
        await sides.b.send_all(b"you")
        assert await said_soon(sides.a) == b"you"


async def test_a_cut_is_of_one_direction_and_loses_nothing() -> None:
    async with connected() as sides:
        sides.there.cut(is_cut=True)
        await sides.a.send_all(b"hello")
        await sides.b.send_all(b"you")
        assert await said_soon(sides.a) == b"you"
        assert await said_soon(sides.b) is None
        sides.there.cut(is_cut=False)
        assert await said_soon(sides.b) == b"hello"


async def test_that_a_side_has_hung_up_does_not_pass_a_cut() -> None:
    async with connected() as sides:
        sides.there.cut(is_cut=True)
        await sides.a.aclose()
        assert await said_soon(sides.b) is None
        sides.there.cut(is_cut=False)
        assert await said_soon(sides.b) == b""


async def test_what_is_late_comes_in_order() -> None:
    async with connected() as sides:
        sides.there.delay_seconds = 2 * _SOON
        await sides.a.send_all(b"a")
        assert await said_soon(sides.b) is None
        sides.there.delay_seconds = 0
        await sides.a.send_all(b"b")
        with trio.fail_after(20):
            assert await sides.b.receive_some(1) == b"a"
            assert await sides.b.receive_some(1) == b"b"


async def test_a_reset_is_noticed_by_both_sides() -> None:
    async with connected() as sides:
        await trio.testing.wait_all_tasks_blocked()
        sides.passage.reset()
        for stream in (sides.a, sides.b):
            with pytest.raises(trio.BrokenResourceError), trio.fail_after(20):
                await stream.receive_some(1)
