"""The kernel has no memory to watch another socket: that one is lost, and nothing else."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest
import trio

from tests.broker.peers.brokers import (
    Broker,
    hello_of,
    introduce,
    open_one,
    open_pair,
    raw,
    read_to_end,
)
from tidemark.broker.config import Address
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.network.reactor import OnReady, Reactor
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers import bind_peers
from tidemark.broker.peers import listening as listening_module


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has so many more sockets not be watched (fs.epoll.max_user_watches)."""
    add, left = Reactor.add, 0

    def add_or_fail(reactor: Reactor, descriptor: int, events: int, on_ready: OnReady) -> None:
        nonlocal left
        if left:
            left -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        add(reactor, descriptor, events, on_ready)

    def set_left(count: int) -> None:
        nonlocal left
        left = count

    monkeypatch.setattr(Reactor, "add", add_or_fail)
    return set_left


async def check_hung_up_on(broker: Broker) -> None:
    async with await raw(broker) as stream:
        with trio.fail_after(20):
            assert await read_to_end(stream) == b""


async def test_one_that_connects_is_hung_up_on(refuse: Callable[[int], None]) -> None:
    async with open_one(1) as one:
        refuse(1)
        await check_hung_up_on(one)
        assert one.metrics.ended[PeerEnd.ERROR].value == 1
        async with await raw(one) as stream:
            await stream.send_all(hello_of(2, one))
            assert await stream.receive_some()


async def test_one_that_is_connected_to_is_tried_again(refuse: Callable[[int], None]) -> None:
    """Whichever side's fails first, of the four sockets that two brokers need."""
    async with open_one(1) as one, open_one(2) as two:
        refuse(5)
        introduce(one, two)
        await one.wait_up(two)
        await two.wait_up(one)


async def test_others_do_not_notice(refuse: Callable[[int], None]) -> None:
    async with open_pair() as (one, two):
        refuse(3)
        for _ in range(3):
            await check_hung_up_on(one)
        assert len(one.told) == len(two.told) == 1


async def test_a_listener_that_cannot_be_watched_is_looked_at_later(
    refuse: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening_module, "_EXHAUSTED_SECONDS", 0.01)
    reactor, accepted = Reactor(Turn()), trio.Event()
    bound = bind_peers(Address("127.0.0.1", 0))

    def begin(connected: socket.socket) -> None:
        connected.close()
        accepted.set()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(reactor.run)
        accepting = listening_module.Accepting(bound, begin, reactor, tasks)
        accepting._stop_listening()
        refuse(3)
        await accepting._listen_later()
        async with await trio.open_tcp_stream(bound.address.host, bound.address.port):
            with trio.fail_after(20):
                await accepted.wait()
        accepting.close()
        tasks.cancel_scope.cancel()
