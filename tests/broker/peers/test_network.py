"""Brokers find each other, talk, lose each other and come back, on real sockets."""

from __future__ import annotations

import errno
import logging
import os
import socket
import struct
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from tests.broker.peers.brokers import (
    directory,
    hello_of,
    introduce,
    open_one,
    open_pair,
    raw,
    read_to_end,
)
from tests.broker.peers.values import append, heartbeat, records_of
from tidemark.broker.config import Address
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers import BoundPeerListener, Peer
from tidemark.broker.peers.encoding import encode
from tidemark.broker.peers.listening import Accepting
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.types import NodeId, Offset

pytestmark = pytest.mark.usefixtures("wire")

DOES_NOT_CONNECT = "it does not connect to this broker"


class Owner:
    """Of a file."""

    is_lent = False


async def test_two_brokers_are_up_for_each_other_with_their_incarnations() -> None:
    async with open_one(1, incarnation=5) as one, open_one(2, incarnation=7) as two:
        introduce(one, two)
        await one.wait_told("up", 2, 7)
        await two.wait_told("up", 1, 5)
        assert one.network.up == {2: 7}
        assert two.metrics.up == {1: True}


@pytest.mark.parametrize("first", [1, 2])
async def test_who_starts_first_does_not_matter(first: int) -> None:
    """The one that is there first has tried in vain for a while."""
    async with AsyncExitStack() as stack:
        early = await stack.enter_async_context(open_one(first))
        async with open_one(3 - first) as gone:
            address = gone.network.address
        early.network.set_peers({NodeId(3 - first): Peer(address)})
        await trio.sleep(0.1)
        late = await stack.enter_async_context(open_one(3 - first, listen=address))
        late.know(early)
        await early.wait_up(late)
        await late.wait_up(early)


async def test_one_that_knows_nobody_yet_is_not_up_though_it_is_connected_to() -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.know(two)
        await wait_until(lambda: two.metrics.received_frames.value == 1)
        await wait_until(lambda: one.metrics.received_frames.value == 1)
        assert one.told == two.told == []
        two.know(one)
        await one.wait_up(two)
        await two.wait_up(one)


async def test_messages_go_both_ways_and_arrive_in_order() -> None:
    async with open_pair() as (one, two):
        for number in range(1, 101):
            one.send(two, heartbeat(number))
            two.send(one, append(b"%d" % number))
        await one.wait_messages(100)
        await two.wait_messages(100)
        assert two.messages == [heartbeat(number) for number in range(1, 101)]
        assert [records_of(each) for each in one.messages] == [b"%d" % n for n in range(1, 101)]


async def test_what_a_turn_brings_together_is_few_frames() -> None:
    async with open_pair() as (one, two):
        before = one.metrics.sent_frames.value
        one.send(two, *(append(b"x", partition=n) for n in range(1000)))
        await two.wait_messages(1000)
        assert one.metrics.sent_frames.value == before + 1


async def test_slices_of_files_arrive_as_the_bytes_they_are(tmp_path: Path) -> None:
    content = bytes(range(256)) * 4096
    (tmp_path / "log").write_bytes(content)
    files = OsFiles()
    async with open_pair() as (one, two):
        slices = [
            LogSlice(files.open(str(tmp_path / "log")), at, 300_000, Offset(1))
            for at in range(0, 700_000, 100_000)
        ]
        one.send(two, *(append(each, partition=n) for n, each in enumerate(slices)))
        await two.wait_messages(len(slices))
        for number, message in enumerate(two.messages):
            assert records_of(message) == content[number * 100_000 :][:300_000]


async def test_a_file_of_which_a_broker_was_sent_something_may_be_written_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "log").write_bytes(bytes(200_000))
    owner = Owner()
    piece = LogSlice(OsFiles().open(str(tmp_path / "log")), 0, 200_000, Offset(1), owner)
    async with open_pair() as (one, two):
        one.send(two, append(piece))
        await two.wait_messages(1)
        assert records_of(two.messages[0]) == bytes(200_000)
        assert not owner.is_lent


async def test_what_was_read_once_is_sent_to_every_broker(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(200_000))
    piece = LogSlice(OsFiles().open(str(tmp_path / "log")), 0, 200_000, Offset(1))
    async with open_pair() as (one, two), open_one(3) as three:
        introduce(one, two, three)
        await one.wait_up(two, three)
        await three.wait_up(one)
        await two.wait_up(one)
        one.send(two, append(piece))
        one.send(three, append(piece))
        for other in (two, three):
            await other.wait_messages(1)
            assert records_of(other.messages[0]) == bytes(200_000)


async def test_a_batch_larger_than_a_frame_arrives_whole() -> None:
    async with open_pair() as (one, two):
        records = bytes(range(256)) * 40_000
        one.send(two, append(records))
        await two.wait_messages(1)
        assert records_of(two.messages[0]) == records


async def test_a_heartbeat_overtakes_batches_that_were_handed_over_before_it() -> None:
    async with open_pair() as (one, two):

        def say() -> None:
            batches = [append(bytes(900_000), partition=n) for n in range(40)]
            one.network.send({two.node: batches})
            one.network.send({two.node: [heartbeat()]})

        one.turn.run(say)
        await two.wait_messages(41)
        assert two.messages.index(heartbeat()) == 0


async def test_messages_to_a_broker_that_is_not_up_are_lost() -> None:
    async with open_one(1) as one:
        one.network.send({NodeId(2): [heartbeat()]})


async def test_a_broker_that_ends_is_down_at_once_and_up_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.link.MEND_SECONDS", 1000.0)
    async with open_one(1) as one:
        async with open_one(2, incarnation=1) as two:
            introduce(one, two)
            await one.wait_up(two)
            address = two.network.address
        await one.wait_down(two)
        async with open_one(2, incarnation=2, listen=address) as again:
            again.know(one)
            await one.wait_told("up", 2, 2)
            await again.wait_up(one)
            one.send(again, heartbeat())
            await again.wait_messages(1)
        await one.wait_down(two)
        assert one.told == [("up", 2, 1), ("down", 2), ("up", 2, 2), ("down", 2)]


async def test_a_broker_that_has_moved_is_found_by_what_it_says() -> None:
    """Before the cluster's metadata can say so: that may need this very broker."""
    async with open_one(1) as one:
        async with open_one(2) as two:
            introduce(one, two)
            await one.wait_up(two)
        await one.wait_down(two)
        async with open_one(2, incarnation=2) as moved:
            assert moved.network.address != two.network.address
            moved.know(one)
            await one.wait_up(moved)
            await moved.wait_up(one)


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


async def test_three_brokers_are_all_up_for_each_other() -> None:
    async with open_one(1) as one, open_one(2) as two, open_one(3) as three:
        introduce(one, two, three)
        await one.wait_up(two, three)
        await two.wait_up(one, three)
        await three.wait_up(one, two)


async def test_a_broker_that_is_no_more_of_the_cluster_is_left() -> None:
    async with open_pair() as (one, two):
        one.network.set_peers({})
        await one.wait_told("down", 2)
        await two.wait_told("down", 1)
        assert not one.metrics.up.get(two.node)
        one.know(two)
        await one.wait_up(two)


async def test_one_that_all_others_have_left_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def said() -> list[str]:
        return [each.message for each in caplog.records if each.levelno == logging.ERROR]

    async with open_one(1) as one, open_one(2) as two, open_one(3) as three:
        introduce(one, two, three)
        await one.wait_up(two, three)
        one.network.registered()
        two.know(three)
        await one.wait_down(two)
        assert not said(), "one that knows nothing of it may be late itself"
        three.know(two)
        await wait_until(lambda: bool(said()))
        await one.wait_down(two, three)
        (told,) = said()
        assert "broker 1 was removed from the cluster" in told
        assert "knows of no broker 1" in told
        assert "Stop it." in told
        introduce(two, one)
        await one.wait_up(two)
        assert len(said()) == 1


async def test_one_that_is_starting_takes_nobody_for_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It belongs to the cluster, and has not read yet who else does."""
    async with open_one(1) as one, open_one(2) as two:
        one.network.registered()
        one.know(two)
        await wait_until(lambda: one.metrics.received_frames.value == 1)
        assert "was removed" not in caplog.text
        two.know(one)
        await one.wait_up(two)


async def test_one_that_is_not_registered_yet_is_no_stranger_for_that(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.know(two)
        await wait_until(lambda: one.network.trouble_with(two.node) == DOES_NOT_CONNECT)
        two.know(one)
        await one.wait_up(two)
        one.network.registered()
        await two.wait_up(one)
    assert "was removed" not in caplog.text


async def test_a_broker_that_does_not_read_is_reset_and_its_memory_is_bounded() -> None:
    async with open_pair() as (one, two):
        link = two.network._links[one.node]
        assert link._incoming is not None
        link._incoming.pause()
        for partition in range(100):
            one.send(two, append(bytes(1_000_000), partition=partition))
        await one.wait_reconnected(two)
        assert one.metrics.ended[PeerEnd.OVERFLOW].value == 1
        await two.wait_reconnected(one)
        one.send(two, heartbeat())
        await two.wait(lambda: heartbeat() in two.messages)


async def test_what_waits_in_files_costs_no_memory_and_may_be_more(tmp_path: Path) -> None:
    """A broker that comes back after a while finds much of every log on its way."""
    (tmp_path / "log").write_bytes(bytes(1_000_000))
    files = OsFiles()
    async with open_pair() as (one, two):
        slices = [
            LogSlice(files.open(str(tmp_path / "log")), 0, 1_000_000, Offset(1)) for _ in range(100)
        ]
        one.send(two, *(append(each, partition=n) for n, each in enumerate(slices)))
        assert one.network.unsent_bytes(two.node) > 64 * 1024 * 1024
        await two.wait_messages(100)
        assert one.told == [("up", 2, 1)]


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


async def test_one_that_is_not_up_is_not_listened_to_but_its_end_is_noticed() -> None:
    async with open_one(1) as one:
        async with await raw(one) as stranger:
            await stranger.send_all(hello_of(2, one))
            assert await stranger.receive_some()
            for frame in encode([heartbeat()], LAST_VERSION):
                await stranger.send_all(b"".join(frame.parts))  # type: ignore[arg-type]  # all of it is in memory
            await trio.testing.wait_all_tasks_blocked(0.01)
        await wait_until(lambda: one.metrics.ended[PeerEnd.BY_PEER].value == 1)
        assert one.messages == []


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


async def test_slices_are_let_go_of_when_their_connection_ends(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(1_000_000))
    files = OsFiles()
    async with open_pair() as (one, two):
        two.network.cut(one.node)
        slices = [
            LogSlice(files.open(str(tmp_path / "log")), 0, 1_000_000, Offset(1)) for _ in range(50)
        ]
        one.send(two, *(append(each, partition=n) for n, each in enumerate(slices)))
        held = open_descriptors()
        two.network.heal(one.node)
        await one.wait_reconnected(two)
        del slices
        assert open_descriptors() < held - 40


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


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


async def test_names_are_resolved() -> None:
    async with open_one(1) as one, open_one(2) as two:
        port = two.network.address.port
        one.network.set_peers({two.node: Peer(Address("localhost", port))})
        two.know(one)
        await one.wait_up(two)


async def wait_until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not condition():  # noqa: ASYNC110 # counts have no events
            await trio.sleep(0.005)
