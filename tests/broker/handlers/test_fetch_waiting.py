"""Fetches that wait: for what, for how long, and what ends a wait."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.broker.handlers.asking import wait
from tests.broker.handlers.fetching import Want, asking, begin_fetch, fetch, fill, offsets, read
from tests.broker.handlers.producing import batch, new_topic, produce, request
from tests.broker.jumping import jumping
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import fetch as handler
from tidemark.broker.network.requests import Pending
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.fetch import FetchResponse


async def test_in_a_session_a_fetch_waits_for_what_it_does_not_name(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, topic="still")
        await fill(node, count=0)
        wants = Want(topic="still", offset=6), Want()
        full = begin_fetch(node, asking(*wants, session_epoch=0))
        assert isinstance(full, FetchResponse)
        assert full.session_id != 0
        more = asking(session_id=full.session_id, session_epoch=1, max_wait_ms=10_000)
        waiting = begin_fetch(node, more)
        assert isinstance(waiting, Pending)
        await produce(node, request(batch(b"new")))
        answer = await wait(waiting)
        assert answer.session_id == full.session_id
        assert [(each.topic, len(each.partitions)) for each in answer.responses] == [("t", 1)]


async def test_f4_a_fetch_of_nothing_is_answered_at_once(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        answer = begin_fetch(node, asking(session_epoch=-1, max_wait_ms=10_000))
        assert isinstance(answer, FetchResponse)


async def test_f8_a_fetch_waits_for_records_and_is_woken_by_them(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        answer = begin_fetch(node, asking(Want(offset=6), max_wait_ms=60_000))
        assert isinstance(answer, Pending)
        await produce(node, request(batch(b"new")))
        with trio.fail_after(20):
            data = (await wait(answer)).responses[0].partitions[0]
        assert offsets(data) == [6]


async def test_f8_a_fetch_waits_for_min_bytes_of_all_its_partitions(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        size = await fill(node, count=1, topic="a")
        await fill(node, count=1, topic="b")
        wants = [Want(topic="a"), Want(topic="b")]
        answer = begin_fetch(node, asking(*wants, min_bytes=3 * size, max_wait_ms=60_000))
        assert isinstance(answer, Pending)
        made = batch(bytes(100), bytes(100))
        await produce(node, request(made, topic="b"))
        with trio.fail_after(20):
            response = await wait(answer)
        assert [len(read(each.partitions[0])) for each in response.responses] == [size, 2 * size]


async def test_one_connection_waits_for_so_many_partitions_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may send many requests before it is answered, and each may name what there is."""
    monkeypatch.setattr(handler, "_WAITED_FOR_MAX", 5)
    async with open_node(tmp_path) as node:
        await fill(node)
        one, other = context(12), context(12)
        pair = asking(*[Want(offset=6)] * 2, max_wait_ms=60_000)
        waiting = [handler.handle(node, pair, one) for _ in range(2)]
        assert all(isinstance(each, Pending) for each in waiting)
        over = handler.handle(node, pair, one)
        assert isinstance(over, FetchResponse)
        assert [len(each.partitions) for each in over.responses] == [2]
        # Who waits for nothing else may always wait.
        many = asking(*[Want(offset=6)] * 9, max_wait_ms=60_000)
        assert isinstance(handler.handle(node, many, other), Pending)
        await produce(node, request(batch(b"new")))
        for each in waiting:
            assert isinstance(each, Pending)
            assert each.is_complete
        again = asking(*[Want(offset=7)] * 2, max_wait_ms=60_000)
        last = handler.handle(node, again, one)
        assert isinstance(last, Pending)
        last.abandon()
        assert one.session.waited_for == other.session.waited_for == 0


async def test_f8_nobody_waits_for_more_than_the_limits_allow(tmp_path: Path) -> None:
    """Whole batches hardly ever fill a limit: a reader who wants as much as it allows would have
    its fetch wait each time, with all of its log before it."""
    async with open_node(tmp_path) as node:
        size = await fill(node, topic="a")
        await fill(node, topic="b")
        for asked in (
            asking(Want(topic="a", bytes_max=2 * size + 9), min_bytes=2 * size + 9),
            asking(Want(topic="a"), max_bytes=2 * size + 9, min_bytes=2 * size + 9),
            asking(Want(topic="a"), max_bytes=2 * size, min_bytes=4 * size),
            asking(Want(topic="a"), Want(topic="b"), max_bytes=3 * size + 9, min_bytes=4 * size),
        ):
            answer = begin_fetch(node, replace(asked, max_wait_ms=60_000))
            assert isinstance(answer, FetchResponse)


async def test_f8_nobody_waits_at_the_end_of_a_segment(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        size = len(batch(bytes(1_000)))
        await new_topic(node, "t", segment_bytes=str(2 * size))
        for _ in range(5):
            await produce(node, request(batch(bytes(1_000))))
        asked = asking(Want(offset=1), min_bytes=3 * size, max_wait_ms=60_000)
        answer = begin_fetch(node, asked)
        assert isinstance(answer, FetchResponse)
        assert offsets(answer.responses[0].partitions[0]) == [1]
        # Where there is nothing behind it, more may come.
        assert isinstance(
            begin_fetch(node, replace(asked, topics=asking(Want(offset=4)).topics)), Pending
        )


async def test_f8_a_wait_ends_with_its_time(tmp_path: Path, clock: MockClock) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        with jumping(clock):
            started = trio.current_time()
            (data,) = await fetch(node, Want(offset=6), max_wait_ms=3_000)
            assert trio.current_time() - started == pytest.approx(3)
        assert offsets(data) == []


async def test_f8_an_error_is_answered_at_once(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        wants = [Want(offset=6), Want(topic="unknown")]
        answer = begin_fetch(node, asking(*wants, max_wait_ms=60_000))
        assert isinstance(answer, FetchResponse)
        codes = [each.partitions[0].error_code for each in answer.responses]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def spoil(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\7")


async def test_f15_a_parked_fetch_that_comes_upon_damage_is_answered(tmp_path: Path) -> None:
    """It is looked at again in the broker's loop, which an error would end."""
    async with open_node(tmp_path) as node:
        size = await fill(node)
        answer = begin_fetch(node, asking(Want(), min_bytes=4 * size, max_wait_ms=60_000), 9)
        assert isinstance(answer, Pending)
        spoil(tmp_path / "t-0" / f"{0:020}.log", size + 16)  # the format of the second batch
        await produce(node, request(batch(bytes(100), bytes(100))))
        with trio.fail_after(20):
            response = await wait(answer)
        assert response.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_who_waits_for_a_topic_that_is_deleted_is_told(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        answer = begin_fetch(node, asking(Want(offset=6), max_wait_ms=60_000))
        assert isinstance(answer, Pending)
        topic = node.topics.get("t")
        assert topic is not None
        await node.topics.delete(topic)
        data = (await wait(answer)).responses[0].partitions[0]
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_client_that_goes_leaves_nothing_waiting(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        before = len(node.timers)
        answer = begin_fetch(node, asking(Want(offset=6), max_wait_ms=60_000))
        assert isinstance(answer, Pending)
        answer.abandon()
        assert len(node.timers) == before
        await produce(node, request(batch()))
