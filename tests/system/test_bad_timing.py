"""Things that happen while a request waits, on a disk that a test can hold and break."""

import errno
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.system.attacks import Peer, batch, fetching, production
from tidemark.broker.config import load_settings
from tidemark.broker.replicas.quick_syncs import QUICK_SECONDS
from tidemark.broker.server import RunningBroker, open_broker
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import ErrorCode, StorageError
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages import delete_topics, fetch, produce
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.testing.wrapped_file import WrappedFile


class HeldFile(WrappedFile):
    """A file whose syncs wait for its disk, and fail when that is broken."""

    def __init__(self, file: File, disk: "HeldDisk") -> None:
        super().__init__(file)
        self._disk = disk

    def sync(self) -> None:
        time.sleep(2 * QUICK_SECONDS)
        assert self._disk.may_sync.wait(10)
        if self._disk.failure is not None:
            raise self._disk.failure
        super().sync()


class HeldDisk(OsFiles):
    """The real disk, with a hand on it; too slow for the loop to wait for it."""

    def __init__(self) -> None:
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.failure: OSError | None = None

    def create(self, path: str) -> File:
        return HeldFile(super().create(path), self)

    def open(self, path: str) -> File:
        return HeldFile(super().open(path), self)


@asynccontextmanager
async def broker_on(disk: HeldDisk, folder: Path) -> AsyncIterator[RunningBroker]:
    options = {"data.dir": str(folder), "listeners": "127.0.0.1:0", "http.listen": "none"}
    options["peer.listen"] = "127.0.0.1:0"
    async with open_broker(load_settings(options=options).settings, files=disk) as broker:
        try:
            yield broker
        finally:
            disk.may_sync.set()


def begin_delete(peer: Peer, topic: str) -> delete_topics.DeleteTopicsRequest:
    request = delete_topics.DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000)
    peer.send(encode_request(request, 4, 7, None))
    return request


def check_deleted(peer: Peer, request: delete_topics.DeleteTopicsRequest) -> None:
    answer = peer.read(request, 4, delete_topics.DeleteTopicsResponse)
    assert answer.responses[0].error_code == ErrorCode.NONE


def errors(answer: produce.ProduceResponse) -> list[int]:
    return [
        partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
    ]


async def test_a_topic_is_deleted_while_a_request_waits_for_another(tmp_path: Path) -> None:
    """The one is committed and gone, the other is still being synced when the answer is made."""
    disk = HeldDisk()

    def attack(bootstrap: str) -> None:
        with Peer(bootstrap) as producer, Peer(bootstrap) as admin, Peer(bootstrap) as other:
            admin.create_topic("gone", flush="os")
            admin.create_topic("slow")
            disk.may_sync.clear()
            both = produce.ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    *production("gone", batch(b"1")).topic_data,
                    *production("slow", batch(b"1")).topic_data,
                ],
            )
            producer.send(encode_request(both, 9, 7, None))
            deletion = begin_delete(admin, "gone")
            assert other.fetch("slow").high_watermark == 0
            disk.may_sync.set()
            answer = producer.read(both, 9, produce.ProduceResponse)
            assert errors(answer) == [ErrorCode.NONE, ErrorCode.NONE]
            check_deleted(admin, deletion)
            assert admin.produce("slow", batch(b"2")) is ErrorCode.NONE

    async with broker_on(disk, tmp_path) as broker:
        await trio.to_thread.run_sync(attack, str(broker.kafka_address))


async def test_a_topic_is_deleted_and_made_anew_while_requests_wait_for_it(tmp_path: Path) -> None:
    disk = HeldDisk()

    def attack(bootstrap: str) -> None:
        with Peer(bootstrap) as producer, Peer(bootstrap) as reader, Peer(bootstrap) as admin:
            admin.create_topic("t")
            waiting = fetching("t", 0, max_wait_ms=8000)
            reader.send(encode_request(waiting, 12, 7, None))
            disk.may_sync.clear()
            uncommitted = production("t", batch(b"old"))
            producer.send(encode_request(uncommitted, 9, 7, None))
            assert admin.fetch("t").high_watermark == 0, "nobody sees what is not committed"
            deletion = begin_delete(admin, "t")
            disk.may_sync.set()
            # One journal: what was written before the deletion is committed before it.
            answer = producer.read(uncommitted, 9, produce.ProduceResponse)
            assert errors(answer) == [ErrorCode.NONE]
            check_deleted(admin, deletion)
            fetched = reader.read(waiting, 12, fetch.FetchResponse)
            (partition,) = fetched.responses[0].partitions
            assert partition.error_code in (
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            admin.create_topic("t")
            assert admin.produce("t", batch(b"new")) is ErrorCode.NONE
            assert [record.value for record in reader.fetch_records("t")] == [b"new"]

    async with broker_on(disk, tmp_path) as broker:
        await trio.to_thread.run_sync(attack, str(broker.kafka_address))


async def test_a_client_leaves_while_its_records_wait_for_the_disk(tmp_path: Path) -> None:
    disk = HeldDisk()

    def attack(bootstrap: str) -> None:
        with Peer(bootstrap) as other:
            other.create_topic("t")
            disk.may_sync.clear()
            with Peer(bootstrap) as leaver:
                leaver.send(encode_request(production("t", batch(b"kept")), 9, 7, None))
                leaver.send(encode_request(fetching("t", 0, max_wait_ms=8000), 12, 8, None))
                assert other.fetch("t").high_watermark == 0
            assert other.fetch("t").high_watermark == 0
            disk.may_sync.set()
            assert other.produce("t", batch(b"next")) is ErrorCode.NONE
            assert [record.value for record in other.fetch_records("t")] == [b"kept", b"next"]

    async with broker_on(disk, tmp_path) as broker:
        await trio.to_thread.run_sync(attack, str(broker.kafka_address))


async def test_a_duplicate_is_not_acknowledged_before_its_original(tmp_path: Path) -> None:
    disk = HeldDisk()
    once = encode_batch(
        [Record(timestamp_ms=1, value=b"once")], producer_id=5, producer_epoch=0, base_sequence=0
    )

    def attack(bootstrap: str) -> None:
        with Peer(bootstrap) as first, Peer(bootstrap) as second, Peer(bootstrap) as other:
            other.create_topic("t")
            disk.may_sync.clear()
            asked = production("t", once)
            for peer in (first, second):
                peer.send(encode_request(asked, 9, 7, None))
                assert other.fetch("t").high_watermark == 0
            second.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                second.socket.recv(1)
            second.socket.settimeout(10)
            disk.may_sync.set()
            for peer in (first, second):
                answer = peer.read(asked, 9, produce.ProduceResponse)
                assert errors(answer) == [ErrorCode.NONE]
                assert answer.responses[0].partition_responses[0].base_offset == 0
            assert other.fetch("t").high_watermark == 1

    async with broker_on(disk, tmp_path) as broker:
        await trio.to_thread.run_sync(attack, str(broker.kafka_address))


async def test_a_sync_that_fails_answers_nobody_and_ends_the_broker(tmp_path: Path) -> None:
    disk, refused = HeldDisk(), threading.Event()

    def attack(bootstrap: str) -> None:
        with Peer(bootstrap) as peer:
            peer.create_topic("t")
            disk.failure = OSError(errno.EIO, "Input/output error")
            peer.send(encode_request(production("t", batch(b"lost")), 9, 7, None))
            assert peer.is_closed(), "no answer, and no connection"
            refused.set()

    async def serve() -> None:
        async with broker_on(disk, tmp_path) as broker:
            bootstrap = str(broker.kafka_address)
            await trio.to_thread.run_sync(attack, bootstrap, abandon_on_cancel=True)

    with pytest.raises(BaseExceptionGroup) as raised:
        await serve()
    assert raised.group_contains(StorageError, match="Input/output error")
    assert await trio.to_thread.run_sync(refused.wait, 5)
