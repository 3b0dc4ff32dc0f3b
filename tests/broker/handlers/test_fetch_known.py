"""Fetches that are like an earlier one of their connection: they are not decoded.

Each answer is held to that of a connection that asks for the first time.
"""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.broker.handlers.fetching import Want, asking, fill
from tests.broker.handlers.marking import end, write
from tests.broker.handlers.producing import batch, begin, new_topic, produce, request
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import fetch
from tidemark.broker.network.calls import Call
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import Session
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import ApiCodec, decode_response, encode_request
from tidemark.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Offset

COMMITTED = 1


def never(run: Callable[[], Coroutine[Any, Any, None]]) -> None:  # Any: what it yields to trio
    raise AssertionError("no handler here is async")


class Decoded:
    """Counts the requests that were decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        decode = ApiCodec.decode_request

        def counted(
            codec: ApiCodec, frame: memoryview, elements_max: int
        ) -> Any:  # Any: as it does
            self.count += 1
            return decode(codec, frame, elements_max)

        monkeypatch.setattr(ApiCodec, "decode_request", counted)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    return Decoded(monkeypatch)


class Reader:
    """Asks as one connection does."""

    def __init__(self, node: Node, version: int = 12, session: Session | None = None) -> None:
        self._version = version
        self._session = session or context(version).session
        odd_events = OddEvents(logging.getLogger("test"))
        self._dispatcher = Dispatcher(node, {1: fetch.handle}, spawn=never, odd_events=odd_events)

    def ask(self, asked: FetchRequest, number: int = 7) -> bytes:
        """The frame that answers it, with its length."""
        encoded = bytearray(encode_request(asked, self._version, number, "c"))
        frames = [memoryview(encoded)[4:]]
        count, given = self._dispatcher.dispatch(frames, self._session, 0.0)
        assert count == 1
        parts = given.parts if isinstance(given, Call) else given
        assert parts is not None
        return b"".join(part if isinstance(part, bytes) else part.read() for part in parts)  # type: ignore[attr-defined]  # a LogSlice

    def read(self, asked: FetchRequest) -> PartitionData:
        number, response = decode_response(APIS[1], self._version, self.ask(asked)[4:])
        assert number == 7
        assert isinstance(response, FetchResponse)
        return response.responses[0].partitions[0]


def by_id(node: Node, asked: FetchRequest) -> FetchRequest:
    """As later versions ask; earlier ones do not say the id."""
    topic = node.topics.get("t")
    assert topic is not None
    return replace(asked, topics=[replace(asked.topics[0], topic_id=topic.id)])


@pytest.mark.parametrize("isolation", [0, COMMITTED])
@pytest.mark.parametrize("version", [9, 10, 11, 12, 13, 15, 18])
async def test_it_is_answered_as_the_first_one_was(
    tmp_path: Path, decoded: Decoded, version: int, isolation: int
) -> None:
    async with open_node(tmp_path) as node:
        batch_bytes = await fill(node, count=8)
        reader = Reader(node, version)
        for bytes_max in (1, batch_bytes, 3 * batch_bytes - 1, 1_000_000):
            before = decoded.count
            for offset in range(16):
                want = Want(offset=offset, bytes_max=bytes_max)
                asked = by_id(node, asking(want, isolation_level=isolation))
                answer = reader.ask(asked, offset)
                if offset:
                    assert decoded.count == before + (1 if version >= 10 else offset + 1)
            asked = by_id(
                node, asking(Want(offset=15, bytes_max=bytes_max), isolation_level=isolation)
            )
            assert answer == Reader(node, version).ask(asked, 15)
        for offset in range(-1, 19):
            for bytes_max in (1, batch_bytes, 3 * batch_bytes - 1):
                want = Want(offset=offset, bytes_max=bytes_max)
                asked = by_id(node, asking(want, isolation_level=isolation))
                assert reader.ask(asked) == Reader(node, version).ask(asked)


async def test_it_counts_as_any_other(tmp_path: Path, decoded: Decoded) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        replica = node.topics.replica("t", 0)
        assert replica is not None
        reader = Reader(node)
        reader.ask(asking(Want()))
        once = replica.bytes_out
        reader.ask(asking(Want()))
        assert once
        assert replica.bytes_out == 2 * once
        assert node.metrics.api(1).requests.value == 2
        assert decoded.count == 1


async def test_the_brokers_own_limit_is_kept(tmp_path: Path, decoded: Decoded) -> None:
    async with open_node(tmp_path, fetch_max_bytes=1024) as node:
        batch_bytes = await fill(node, count=8)
        reader = Reader(node)
        sizes = [len(reader.read(asking(Want(offset=at))).records or b"") for at in (0, 0, 2)]
        assert sizes == [1024 // batch_bytes * batch_bytes] * 3
        assert decoded.count == 1


async def test_an_offset_that_is_not_there_is_refused_with_the_same_words(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        reader = Reader(node)
        reader.ask(asking(Want()))
        for offset in (-1, 99):
            answer = reader.read(asking(Want(offset=offset)))
            assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_reader_that_knows_of_another_leader_is_told_so(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        reader = Reader(node)
        assert reader.read(asking(Want(epoch=0))).error_code == ErrorCode.NONE
    async with open_node(tmp_path) as node:
        again = Reader(node)
        for _ in range(2):
            refusal = again.read(asking(Want(epoch=0)))
            assert refusal.error_code == ErrorCode.FENCED_LEADER_EPOCH
        for _ in range(2):
            assert again.read(asking(Want(epoch=1))).error_code == ErrorCode.NONE


async def test_where_there_is_too_little_it_waits(tmp_path: Path, decoded: Decoded) -> None:
    async with open_node(tmp_path) as node:
        batch_bytes = await fill(node)
        dispatcher = Dispatcher(
            node, {1: fetch.handle}, spawn=never, odd_events=OddEvents(logging.getLogger("test"))
        )
        session = context(12).session

        def ask(offset: int) -> object:
            asked = asking(Want(offset=offset), max_wait_ms=60_000, min_bytes=2 * batch_bytes)
            frame = memoryview(bytearray(encode_request(asked, 12, 7, "c")))[4:]
            return dispatcher.dispatch([frame], session, 0.0)[1]

        assert isinstance(ask(0), list)
        assert isinstance(ask(2), list)
        assert decoded.count == 1
        call = ask(4)
        assert isinstance(call, Call)
        assert not call.is_settled
        await produce(node, request(batch(bytes(100), bytes(100))))
        assert call.is_settled


async def test_nothing_above_the_high_watermark_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        batch_bytes = await fill(node, count=1)
        reader = Reader(node)
        reader.ask(asking(Want()))
        disk.hold()
        begin(node, request(batch(), acks=1))
        data = reader.read(asking(Want()))
        assert (len(data.records or b""), data.high_watermark) == (batch_bytes, 2)
        assert reader.read(asking(Want(offset=2))).records == b""
        disk.release()


async def test_readers_of_committed_transactions_stop_where_one_is_open_and_hear_what_was_aborted(
    tmp_path: Path,
) -> None:
    def told(reader: Reader) -> tuple[int, list[int]]:
        data = reader.read(asking(Want(), isolation_level=COMMITTED))
        aborted = data.aborted_transactions
        assert aborted is not None
        return len(data.records or b""), [each.producer_id for each in aborted]

    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch()))
        reader = Reader(node)
        first = told(reader)
        await write(replica, 7)
        assert told(reader) == first == told(Reader(node))
        await end(node, 7, commit=False)
        assert told(reader) == told(Reader(node))
        assert told(reader)[1] == [7]


async def test_a_topic_that_has_gone_is_unknown_and_one_of_its_name_is_another(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        by_name, by_its_id = Reader(node), Reader(node, 13)
        old = by_id(node, asking(Want()))
        for reader in (by_name, by_its_id):
            assert reader.read(old).error_code == ErrorCode.NONE
        topic = node.topics.get("t")
        assert topic is not None
        await node.topics.delete(topic)
        assert by_name.read(old).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert by_its_id.read(old).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        await fill(node, count=1)
        assert by_name.read(old).high_watermark == 2
        assert by_its_id.read(old).error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_what_retention_has_removed_is_out_of_range(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        replica = node.topics.replica("t", 0)
        assert replica is not None
        reader = Reader(node)
        assert reader.read(asking(Want())).log_start_offset == 0
        await replica.delete_records(Offset(2))
        assert reader.read(asking(Want())).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert reader.read(asking(Want(offset=2))).log_start_offset == 2


async def test_each_version_of_a_connection_is_known_for_itself(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        session = context(12).session
        asked = by_id(node, asking(Want(offset=2)))
        for version in (11, 12, 13, 12, 11, 13):
            assert Reader(node, version, session).ask(asked) == Reader(node, version).ask(asked)
