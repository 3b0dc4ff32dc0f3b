"""Fetch: which records come, within which limits, and what is refused."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.broker.handlers.fetching import Want, asking, begin_fetch, fetch, fill, offsets, read
from tests.broker.handlers.producing import batch, begin, new_topic, produce, request
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import fetch as handler
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_response
from tidemark.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Offset


async def test_records_come_from_the_offset_to_the_high_watermark(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        (data,) = await fetch(node, Want(offset=2))
        assert offsets(data) == [2, 3, 4, 5]
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (6, 6, 0)


async def test_f6_an_offset_within_a_batch_gets_the_whole_batch(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        (data,) = await fetch(node, Want(offset=3))
        assert offsets(data) == [2, 3, 4, 5]


async def test_nothing_above_the_high_watermark_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        await fill(node, count=1)
        disk.hold()
        begin(node, request(batch(), acks=1))
        (data,) = await fetch(node, Want())
        assert offsets(data) == [0, 1]
        assert data.high_watermark == 2


async def test_in_a_session_what_is_at_rest_is_said_once(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, topic="still")
        await fill(node)
        wants = Want(topic="still", offset=6), Want(offset=6)
        full = begin_fetch(node, asking(*wants, session_epoch=0))
        assert isinstance(full, FetchResponse)
        replica = node.topics.replica("t", 0)
        assert replica is not None

        def told(epoch: int) -> list[tuple[str, int]]:
            asked = asking(session_id=full.session_id, session_epoch=epoch)
            answer = begin_fetch(node, asked)
            assert isinstance(answer, FetchResponse)
            return [(t.topic, p.log_start_offset) for t in answer.responses for p in t.partitions]

        assert [each.topic for each in full.responses] == ["still", "t"]
        assert told(1) == []
        await replica.delete_records(Offset(2))
        assert told(2) == [("t", 2)]
        assert told(3) == []


@pytest.mark.parametrize("slots", [0, 1000])
async def test_f1_whether_sessions_are_declined_makes_no_difference_to_records(
    tmp_path: Path, slots: int
) -> None:
    async with open_node(tmp_path, max_incremental_fetch_session_cache_slots=slots) as node:
        await fill(node)
        answer = begin_fetch(node, asking(Want(), session_epoch=0))
        assert isinstance(answer, FetchResponse)
        assert (bool(answer.session_id), answer.error_code) == (slots > 0, ErrorCode.NONE)
        assert offsets(answer.responses[0].partitions[0]) == [0, 1, 2, 3, 4, 5]


def by_id(topic_id: UUID, version: int = 13, **fields: Any) -> FetchRequest:
    """Asks for one partition as newer versions do. Any: any field of the request."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    asked = FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, **fields},
        topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
    )
    return decode(FetchRequest, version, encode(asked, version))


@pytest.mark.parametrize("version", range(13, 19))
async def test_topics_are_read_by_id(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        topic = node.topics.get("t")
        assert topic is not None
        answer = begin_fetch(node, by_id(topic.id, version), version)
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].topic_id == topic.id
        assert offsets(answer.responses[0].partitions[0]) == [0, 1, 2, 3, 4, 5]


async def test_f16_an_id_that_no_topic_has_is_not_an_unknown_name(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        before = node.topics.get("t")
        assert before is not None
        await node.topics.delete(before)
        await new_topic(node, "t")
        answer = begin_fetch(node, by_id(before.id, max_wait_ms=10_000), 13)
        assert isinstance(answer, FetchResponse)
        (topic,) = answer.responses
        assert topic.topic_id == before.id
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_in_any_version_nobody_fetches_as_a_replica(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        topic = node.topics.get("t")
        assert topic is not None
        asked = by_id(topic.id, 15, replica_state=ReplicaState(replica_id=1))
        answer = begin_fetch(node, asked, 15)
        assert isinstance(answer, FetchResponse)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_f2_every_partition_asked_for_is_answered_also_without_data(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, topic="full")
        await fill(node, count=0, topic="empty")
        answered = await fetch(
            node, Want(topic="empty"), Want(topic="full"), Want(topic="full", offset=6)
        )
        assert [len(offsets(data)) for data in answered] == [0, 6, 0]


async def test_f3_a_session_that_was_never_given_is_not_found(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        answer = begin_fetch(node, asking(Want(), session_id=9, session_epoch=1))
        assert isinstance(answer, FetchResponse)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert list(answer.responses) == []


@pytest.mark.parametrize("version", range(4, 13))
async def test_f5_no_records_are_empty_records_and_never_null(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, count=0)
        answer = begin_fetch(node, asking(Want()), version)
        assert isinstance(answer, FetchResponse)
        parts = encode_response(answer, APIS[1], version, 1)
        frame = b"".join(part for part in parts if isinstance(part, bytes))
        if version < 12:
            assert frame.endswith(bytes(4))
        else:
            # Compact length 0, then the tagged fields of partition, topic and response.
            assert frame.endswith(b"\x01\x00\x00\x00")


async def test_f7_the_first_batch_comes_whole_and_then_limits_hold(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        size = await fill(node)
        for bytes_max, count in [(1, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2)]:
            (data,) = await fetch(node, Want(bytes_max=bytes_max))
            assert len(read(data)) == count * size
            (data,) = await fetch(node, Want(), max_bytes=bytes_max)
            assert len(read(data)) == count * size


async def test_f7_the_total_is_used_up_in_the_order_of_the_request(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        size = await fill(node, topic="a")
        await fill(node, topic="b")
        wants = [Want(topic="a"), Want(topic="b")]
        answer = await fetch(node, *wants, max_bytes=4 * size)
        # The session's first fetch begins with the second partition.
        assert [len(read(data)) // size for data in answer] == [1, 3]


async def test_f7_no_partition_starves_behind_one_that_always_has_more(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, topic="a")
        await fill(node, topic="b")
        asked, one = asking(Want(topic="a"), Want(topic="b"), max_bytes=1), context(12)
        got = set()
        for _ in range(4):
            answer = handler.handle(node, asked, one)
            assert isinstance(answer, FetchResponse)
            got |= {t.topic for t in answer.responses if len(read(t.partitions[0]))}
        assert got == {"a", "b"}


async def test_f9_beyond_the_log_is_out_of_range_and_its_end_is_not(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        replica = node.topics.replica("t", 0)
        assert replica is not None
        await replica.delete_records(Offset(2))
        for offset, code in [
            (1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (2, ErrorCode.NONE),
            (6, ErrorCode.NONE),
            (7, ErrorCode.OFFSET_OUT_OF_RANGE),
            (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
        ]:
            (data,) = await fetch(node, Want(offset=offset))
            assert ErrorCode(data.error_code) is code
            assert (data.log_start_offset, data.high_watermark) == (2, 6)


async def test_f10_a_client_is_fenced_by_the_epoch_it_knows(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
    async with open_node(tmp_path) as node:
        replica = node.topics.replica("t", 0)
        assert replica is not None
        assert replica.epoch == 1
        for epoch, code in [
            (-1, ErrorCode.NONE),
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ]:
            for offset in (0, 6):
                (data,) = await fetch(node, Want(offset=offset, epoch=epoch))
                assert ErrorCode(data.error_code) is code


async def test_f11_read_committed_gets_a_list_of_aborted_and_read_uncommitted_none(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        (committed,) = await fetch(node, Want(), isolation_level=1)
        (uncommitted,) = await fetch(node, Want(), isolation_level=0)
        assert committed.aborted_transactions == ()
        assert uncommitted.aborted_transactions is None
        assert offsets(committed) == offsets(uncommitted)


async def test_f14_no_other_replica_is_preferred(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        (data,) = await fetch(node, Want(), rack_id="somewhere")
        assert data.preferred_read_replica == -1


async def test_f15_zstd_is_not_sent_to_a_client_from_before_it(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        await produce(node, request(batch(bytes(1_000), compression=Compression.ZSTD)))
        (refused,) = await fetch(node, Want(), version=9)
        assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        (data,) = await fetch(node, Want(), version=10)
        assert offsets(data) == [0]


async def test_a8_a_topic_may_be_listed_twice(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=2))
        await fill(node, topic="other")
        for partition, count in ((0, 1), (1, 2)):
            for _ in range(count):
                await produce(node, request(batch(), partition=partition))
        answered = await fetch(node, Want(), Want(topic="other"), Want(partition=1), Want())
        assert [len(offsets(data)) for data in answered] == [1, 6, 2, 1]


async def test_a_client_that_says_it_is_a_replica_gets_nothing(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node)
        (data,) = await fetch(node, Want(), replica_id=2)
        assert data.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert read(data) == b""


async def test_the_brokers_own_limit_bounds_a_fetch(tmp_path: Path) -> None:
    async with open_node(tmp_path, fetch_max_bytes=1024) as node:
        await fill(node, count=20)
        (data,) = await fetch(node, Want())
        assert len(read(data)) <= 1024


async def test_what_is_fetched_is_counted_by_topic(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        size = await fill(node)
        await fetch(node, Want())
        assert node.metrics.topic("t").bytes_out.value == 3 * size
