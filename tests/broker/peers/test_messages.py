"""What brokers say to each other arrives, and what waits to be said is bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.peers.brokers import (
    hello_of,
    introduce,
    open_one,
    open_pair,
    raw,
)
from tests.broker.peers.values import append, heartbeat, records_of
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.encoding import encode
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.types import NodeId, Offset

pytestmark = pytest.mark.usefixtures("wire")


class Owner:
    """Of a file."""

    is_lent = False


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
