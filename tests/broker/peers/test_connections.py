"""Connections between brokers that are lost, made again, replaced, cut or not answered."""

from __future__ import annotations

import errno
import socket
import struct

import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.peers.brokers import (
    directory,
    hello_of,
    introduce,
    open_one,
    open_pair,
    raw,
    read_to_end,
)
from tests.broker.peers.values import heartbeat
from tidemark.broker.config import Address
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers import BoundPeerListener, Peer
from tidemark.broker.peers.listening import Accepting
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")


@pytest.mark.parametrize("which", ["outgoing", "incoming", "both"])
async def test_a_lost_connection_is_not_a_lost_broker(which: str) -> None:
    """It is connected again at once. But what was on its way may be lost, so that is told."""
    async with open_pair() as (one, two):
        link = one.network._links[two.node]
        outgoing, incoming = link.outgoing, link._incoming
        assert outgoing is not None
        assert incoming is not None
        if which != "incoming":
            one.turn.run(lambda: outgoing.close(PeerEnd.ERROR, "for the test"))
        if which != "outgoing":
            one.turn.run(lambda: incoming.close(PeerEnd.ERROR, "for the test"))
        await one.wait_reconnected(two)
        await two.wait_reconnected(one)
        assert one.told == [("up", 2, 1)] * 2
        assert two.told == [("up", 1, 1)] * 2
        one.send(two, heartbeat(1))
        two.send(one, heartbeat(2))
        await one.wait_messages(1)
        await two.wait_messages(1)


async def test_while_a_connection_is_missing_a_broker_is_up_and_may_be_spoken_to() -> None:
    async with open_pair() as (one, two):
        link = one.network._links[two.node]

        def lose_it_and_speak() -> None:
            assert link.outgoing is not None
            link.outgoing.close(PeerEnd.ERROR, "for the test")
            assert one.network.up == {2: 1}
            one.network.send({two.node: [heartbeat()]})

        one.turn.run(lose_it_and_speak)
        await one.wait_reconnected(two)
        assert two.messages == []


async def test_one_that_can_be_reached_and_does_not_answer_is_down_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.link.MEND_SECONDS", 0.05)
    async with open_pair() as (one, two):
        two.network.cut(one.node)
        link = one.network._links[two.node]
        one.turn.run(lambda: link.close(PeerEnd.ERROR, "for the test"))
        await one.wait_told("down", 2)
        assert one.network.up == {}


async def test_one_that_another_broker_stands_in_place_of_is_down_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.link.MEND_SECONDS", 1000.0)
    async with open_one(1) as one, open_one(2) as two, open_one(3) as other:
        introduce(one, two)
        await one.wait_up(two)
        link = one.network._links[two.node]
        link.aim(Peer(other.network.address, directory(2)))
        link.where.said_address = None
        one.turn.run(lambda: link.close(PeerEnd.ERROR, "for the test"))
        await one.wait_told("down", 2)


async def test_a_connection_that_is_reset_has_ended() -> None:
    async with open_one(1) as one:
        stranger = await raw(one)
        await stranger.send_all(hello_of(2, one))
        assert await stranger.receive_some()
        plain = stranger.transport_stream if isinstance(stranger, trio.SSLStream) else stranger
        assert isinstance(plain, trio.SocketStream)
        plain.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stranger.aclose()
        await wait_until(lambda: one.metrics.ended[PeerEnd.BY_PEER].value == 1)
        assert one.network._links[NodeId(2)]._incoming is None


async def test_what_had_arrived_before_a_loss_is_heard_when_that_is_mended() -> None:
    async with open_pair() as (one, two):
        link = one.network._links[two.node]
        two.send(one, heartbeat())
        outgoing = link.outgoing
        assert outgoing is not None
        one.turn.run(lambda: outgoing.close(PeerEnd.ERROR, "for the test"))
        await one.wait_messages(1)
        assert one.told == [("up", 2, 1), ("up", 2, 1)]


async def test_one_that_connects_is_connected_to_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has just shown that it is there; the next attempt was not due for long."""
    monkeypatch.setattr("tidemark.broker.peers.dialing._FIRST_SECONDS", 1000.0)
    async with open_one(1) as one:
        async with open_one(2) as two:
            pass
        one.know(two)
        await wait_until(lambda: one.metrics.attempts.value == 1)
        async with open_one(2) as two:
            two.know(one)
            await one.wait_up(two)


async def test_one_that_connects_again_has_one_connection() -> None:
    async with open_one(1) as one, await raw(one) as first, await raw(one) as second:
        for stranger in (first, second):
            await stranger.send_all(hello_of(2, one))
            assert await stranger.receive_some()
        assert await read_to_end(first) == b""
        assert one.metrics.ended[PeerEnd.REPLACED].value == 1


async def test_one_that_does_not_answer_a_hello_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.dialing.HELLO_SECONDS", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with open_one(1) as one:
            one.network.set_peers({NodeId(2): Peer(Address(*silent.getsockname()))})
            await wait_until(lambda: one.metrics.ended[PeerEnd.NO_HELLO].value == 2)
            assert one.told == []


async def test_without_descriptors_others_are_accepted_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.listening._EXHAUSTED_SECONDS", 0.01)
    errors = [errno.EMFILE, errno.EPROTO]

    class Listening(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if errors:
                raise OSError(errors.pop(0), "as told")
            return super().accept()

    taken: list[socket.socket] = []
    reactor = Reactor(Turn())
    async with trio.open_nursery() as tasks:
        with Listening() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            listening.setblocking(False)
            address = Address(*listening.getsockname())
            bound = BoundPeerListener(socket=listening, advertised=address)
            accepting = Accepting(bound, taken.append, reactor, tasks)
            tasks.start_soon(reactor.run)
            async with await trio.open_tcp_stream(address.host, address.port):
                await wait_until(lambda: bool(taken))
            taken[0].close()
            accepting.close()
            tasks.cancel_scope.cancel()
    assert errors == []


async def test_behind_a_cut_nothing_passes_and_nobody_is_told_until_it_is_healed() -> None:
    async with open_pair() as (one, two):
        one.network.cut(two.node)
        one.send(two, heartbeat(1))
        two.send(one, heartbeat(2))
        await trio.sleep(0.05)
        assert one.messages == two.messages == []
        assert len(one.told) == len(two.told) == 1
        one.network.heal(two.node)
        await one.wait_reconnected(two)
        await two.wait_reconnected(one)
        one.send(two, heartbeat(3))
        await two.wait_messages(1)
        assert two.messages == [heartbeat(3)]
        assert one.messages == []


async def test_who_connects_over_a_cut_waits_until_it_is_healed() -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.network.cut(two.node)
        introduce(one, two)
        await trio.sleep(0.05)
        assert one.told == two.told == []
        one.network.heal(two.node)
        await one.wait_up(two)
        await two.wait_up(one)
