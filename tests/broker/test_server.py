"""A whole broker in this process, on real sockets."""

import gc
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from benchmarks.raw_client import (
    create_topic,
    fetch_frame,
    fetch_load,
    produce_frame,
    produce_load,
)
from tests.broker.handlers.producing import batch
from tidemark.broker.config import Address, BrokerSettings, Endpoint
from tidemark.broker.server import open_broker
from tidemark.partitions.state_machines import cluster_machine
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.os_files import OsFile, OsFiles
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import BytesLike

R = TypeVar("R")
MIB = 1024 * 1024


def settings(data_dir: Path) -> BrokerSettings:
    anywhere = Address("127.0.0.1", 0)
    return BrokerSettings(
        data_dir=data_dir,
        listeners=(Endpoint("PLAINTEXT", anywhere),),
        peer_listen=anywhere,
        http_listen=None,
    )


async def aside(work: Callable[[tuple[str, int]], R], address: Address) -> R:
    """Run a blocking client in a thread."""
    with trio.fail_after(60):
        return await trio.to_thread.run_sync(work, (address.host, address.port))


async def test_an_empty_directory_is_served_soon_and_stopped_soon(tmp_path: Path) -> None:
    started = time.perf_counter()
    async with open_broker(settings(tmp_path / "new" / "data")) as broker:
        assert time.perf_counter() - started < 15
        assert broker.kafka_address.port
        stopping = time.perf_counter()
    assert time.perf_counter() - stopping < 15


async def test_a_broker_that_has_ended_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """Whoever opens one in its own process has no other way to get them back. But for the journal's
    file: a thread that hangs in the disk may be at it, and it closes itself behind that one."""
    gc.disable()
    try:
        for name in ("first", "second"):  # what is imported late stays open after the first
            before = open_descriptors()
            async with open_broker(settings(tmp_path / name)):
                assert open_descriptors() != before
            after = open_descriptors()
    finally:
        gc.enable()
    assert after == before


def open_descriptors() -> dict[int, str]:
    """What each leads to."""
    there = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            leads_to = os.readlink(f"/proc/self/fd/{number}")
            if not leads_to.endswith(".journal"):
                there[int(number)] = leads_to
    return there


async def test_metadata_of_a_later_version_end_a_start_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_broker(settings(tmp_path)):
        pass

    def refuse(_: bytes) -> Command:
        raise StorageError("a command that this version of Tidemark does not know")

    monkeypatch.setattr(cluster_machine, "decode_command", refuse)
    with pytest.raises(ExceptionGroup) as raised, trio.fail_after(30):
        async with open_broker(settings(tmp_path)):
            pass
    (error,) = _leaves(raised.value)
    assert isinstance(error, StorageError)
    assert "metadata cannot be served: cannot be read: the metadata at offset 0" in str(error)
    assert "a command that this version of Tidemark does not know. Run the newest" in str(error)


async def test_a_large_fetch_does_not_stall(tmp_path: Path) -> None:
    """With MSG_MORE and TCP_NOTSENT_LOWAT together, 64 MB took from one second to ten."""
    async with open_broker(settings(tmp_path)) as broker:

        def fill_and_read(address: tuple[str, int]) -> float:
            create_topic(address, "t", flush="os")
            produce_load(address, produce_frame("t", batch(bytes(MIB // 2)), acks=1), requests=127)
            load = fetch_load(address, "t", end_offset=128, bytes_max=16 * MIB)
            assert load.size_bytes > 64 * MIB
            return load.seconds

        assert await aside(fill_and_read, broker.kafka_address) < 20


async def test_a_stop_answers_parked_fetches_and_what_waits_for_the_disk(tmp_path: Path) -> None:
    answers = list[bytes]()
    async with trio.open_nursery() as nursery, open_broker(settings(tmp_path)) as broker:

        def ask(address: tuple[str, int]) -> None:
            create_topic(address, "t", flush="commit")
            with socket.create_connection(address) as client:
                client.sendall(fetch_frame("t", 0, bytes_max=MIB))
                parked.set()
                answers.append(client.recv(1_000))

        parked = _LoopEvent()
        nursery.start_soon(trio.to_thread.run_sync, ask, tuple_of(broker.kafka_address))
        await parked.wait()
        await trio.sleep(0.1)
    assert len(answers) == 1
    assert answers[0]


class _LoopEvent:
    """An event of the loop that a thread may set."""

    def __init__(self) -> None:
        self._event = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def set(self) -> None:
        self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


def tuple_of(address: Address) -> tuple[str, int]:
    return address.host, address.port


def fill(address: tuple[str, int]) -> None:
    """Ten records."""
    create_topic(address, "t", flush="os")
    produce_load(address, produce_frame("t", batch(), acks=1), requests=9)


async def test_a_cancelled_broker_still_stops_in_order(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with open_broker(settings(tmp_path)) as broker:
            await aside(fill, broker.kafka_address)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with open_broker(settings(tmp_path)) as broker:
        replica = broker.node.topics.replica("t", 0)
        assert replica is not None
        assert replica.log.recovery.clean
        assert replica.log_end == 10


class BreakableFile(OsFile):
    """A file on a disk that may die."""

    __slots__ = ("_disk",)

    def __init__(self, disk: "BreakingDisk", descriptor: int) -> None:
        super().__init__(descriptor)
        self._disk = disk

    def sync(self) -> None:
        self._disk.check()
        super().sync()

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        self._disk.check()
        super().pwritev_synced(parts, position)


class BreakingDisk(OsFiles):
    """A disk that cannot be synced from some moment on."""

    is_broken = False

    def check(self) -> None:
        if self.is_broken:
            raise OSError(5, "Input/output error")

    def create(self, path: str) -> File:
        return self._breakable(super().create(path))

    def open(self, path: str) -> File:
        return self._breakable(super().open(path))

    def _breakable(self, file: File) -> File:
        return BreakableFile(self, os.dup(file.fileno()))


async def serve_until_its_disk_fails(data_dir: Path) -> None:
    """A client produces while the disk dies, and is hung up on. Raises how the broker ends."""
    disk, seen = BreakingDisk(), list[str]()

    def produce(address: tuple[str, int]) -> None:
        create_topic(address, "t", flush="commit")
        disk.is_broken = True
        try:
            produce_load(address, produce_frame("t", batch(), acks=-1), requests=1)
        except ConnectionError:
            seen.append("hung up")

    async with open_broker(settings(data_dir), files=disk) as broker:
        await aside(produce, broker.kafka_address)
        assert seen == ["hung up"]
        await trio.sleep_forever()


async def test_a_failed_sync_ends_the_broker_and_acknowledges_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught, trio.fail_after(30):
        await serve_until_its_disk_fails(tmp_path)
    (error,) = _leaves(caught.value)
    assert isinstance(error, StorageError)
    assert "Nothing is known about the disk" in str(error)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf
        for each in group.exceptions
        for leaf in (_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]
