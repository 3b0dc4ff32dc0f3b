"""Produce requests that come together, with batches for several partitions in each."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.broker.handlers.produce_bursts import Connect, Given, appends, idempotent, responses
from tests.broker.handlers.produce_connection import VERSION, connect, values
from tests.broker.handlers.producing import batch
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import open_node
from tidemark.broker.handlers.produce_work import RUN_BYTES_MAX
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.network.calls import Call
from tidemark.broker.network.requests import NotNow
from tidemark.broker.node import Node
from tidemark.partitions.storage.os_files import OsFile
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tidemark.protocol.types import Offset

__all__ = ["appends", "connect"]

Answer = tuple[int, int, int]
"""Partition, error and base offset."""


def spread(
    *batches: tuple[int, bytes | None], acks: int = -1, topic: Topic | None = None, **options: int
) -> ProduceRequest:
    """A request with these batches, each for its partition."""
    data = [PartitionProduceData(index=index, records=records) for index, records in batches]
    ids = {} if topic is None else {"topic_id": topic.id}
    return ProduceRequest(
        acks=acks,
        timeout_ms=options.get("timeout_ms", 30_000),
        topic_data=[TopicProduceData(name="t", partition_data=data, **ids)],
    )


async def new_topic(node: Node, *, flush: str = "os", partitions: int = 3) -> Topic:
    configs = {"flush": flush}
    return await node.topics.create(NewTopic(name="t", partitions=partitions, configs=configs))


async def hold_once_committed(disk: HeldDisk, topic: Topic) -> None:
    """Nothing reaches the disk behind the first record of partitions 0 and 1."""
    with trio.fail_after(20):
        for index in (0, 1):
            await topic.replicas[index].wait_committed(Offset(1))
    disk.hold()


def numbered(given: Given, version: int = VERSION) -> dict[int, list[PartitionProduceResponse]]:
    """What each request was answered, by its number, in the order of the answers."""
    found = {
        number: [*response.responses[0].partition_responses]
        for number, response in responses(given, version)
    }
    assert list(found) == sorted(found)
    return found


def answers(given: Given) -> list[list[Answer]]:
    """What each request was answered, in their order."""
    return [
        [(answer.index, answer.error_code, answer.base_offset) for answer in of_one]
        for of_one in numbered(given).values()
    ]


def taken(given: Given) -> list[int]:
    return [count for count, _ in given]


def stored(topic: Topic) -> list[list[bytes | None]]:
    return [values(topic.replicas[index]) for index in range(topic.partition_count)]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 9, 13])
async def test_a_burst_is_one_write_for_each_partition_and_each_request_has_its_own_answer(
    tmp_path: Path, connect: Connect, appends: list[int], version: int, acks: int
) -> None:
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        first = spread((0, batch(b"0")), (1, batch(b"1")), acks=acks, topic=topic)
        client.ask(first, version)
        appends.clear()
        burst = [
            spread((0, batch(b"a")), (1, batch(b"b", b"c")), acks=acks, topic=topic),
            spread((1, batch(b"d")), (2, batch(b"e")), acks=acks, topic=topic),
            spread((2, batch(b"f")), (1, batch(b"g")), acks=acks, topic=topic),
        ]
        given = client.ask_all(burst, version)
        found = numbered(given, version)
        assert {
            number: [(answer.index, answer.base_offset) for answer in of_one]
            for number, of_one in found.items()
        } == {2: [(0, 1), (1, 1)], 3: [(1, 3), (2, 0)], 4: [(2, 1), (1, 4)]}
        assert {answer.error_code for of_one in found.values() for answer in of_one} == {0}
        assert (taken(given), appends) == ([3], [1, 3, 2])
        assert stored(topic) == [[b"0", b"a"], [b"1", b"b", b"c", b"d", b"g"], [b"e", b"f"]]
        assert node.metrics.api(0).requests.value == 4


async def test_what_is_refused_is_refused_alone_and_its_neighbours_are_not(
    tmp_path: Path, connect: Connect
) -> None:
    broken = bytearray(batch(b"broken"))
    broken[-1] ^= 1
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, batch(b"0")), (1, batch(b"1"))))
        given = client.ask_all(
            [
                spread((0, batch(b"a")), (1, batch(b"b"))),
                spread((0, bytes(broken)), (1, batch(b"c"))),
                spread((0, None), (9, batch(b"nowhere")), (1, batch(b"d"))),
                spread((0, batch(b"e")), (9, batch(b"nowhere"))),
            ]
        )
        corrupt, invalid = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
        unknown = (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert taken(given) == [4]
        assert answers(given) == [
            [(0, 0, 1), (1, 0, 1)],
            [(0, corrupt, -1), (1, 0, 2)],
            [(0, invalid, -1), unknown, (1, 0, 3)],
            [(0, 0, 2), unknown],
        ]
        assert stored(topic)[:2] == [[b"0", b"a", b"e"], [b"1", b"b", b"c", b"d"]]


async def test_a_batch_that_is_sent_twice_in_one_burst_is_stored_once(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, idempotent(0)), (1, idempotent(0))))
        given = client.ask_all(
            [spread((0, idempotent(n)), (1, idempotent(n))) for n in (1, 2, 2, 4, 3)]
        )
        gap = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        due = [(0, 1), (0, 2), (0, 2), (gap, -1), (0, 3)]
        assert answers(given) == [[(0, *each), (1, *each)] for each in due]
        assert stored(topic)[:2] == [[b"0", b"1", b"2", b"3"]] * 2


async def test_a_write_that_fails_refuses_what_was_in_it_and_nothing_else(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, idempotent(0)), (1, idempotent(0))))
        asked = [spread((0, idempotent(1)), (1, idempotent(1))), spread((0, idempotent(2)))]
        with monkeypatch.context() as patch:
            patch.setattr(OsFile, "pwritev", full)
            given = client.ask_all(asked)
        refused = (0, ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert answers(given) == [[refused, (1, 0, 1)], [refused]]
        given_up = (0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert answers(client.ask_all([asked[1]])) == [[given_up]], "without the one before it"
        again = client.ask_all([spread((0, idempotent(n))) for n in (1, 2)])
        assert answers(again) == [[(0, 0, 1)], [(0, 0, 2)]]
        assert stored(topic)[:2] == [[b"0", b"1", b"2"], [b"0", b"1"]]


async def test_a_burst_is_answered_once_all_its_partitions_are_committed(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node, flush="commit"), connect(node)
        client.ask(spread((0, batch()), (1, batch())))
        await hold_once_committed(disk, topic)
        ((count, call),) = client.ask_all([spread((0, batch()), (1, batch())) for _ in range(3)])
        assert isinstance(call, Call)
        assert (count, call.count, call.is_settled) == (3, 3, False)
        assert [topic.replicas[index].log_end for index in (0, 1)] == [4, 4]
        disk.release()
        due = [[(0, 0, offset), (1, 0, offset)] for offset in (1, 2, 3)]
        assert answers([(count, call)]) == due


async def test_a_burst_whose_time_is_over_is_told_so_where_it_is_not_committed(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node, flush="commit"), connect(node)
        client.ask(spread((0, batch()), (1, batch())))
        await hold_once_committed(disk, topic)
        asked = [spread((0, batch()), (1, batch()), timeout_ms=1) for _ in range(2)]
        ((count, call),) = client.ask_all(asked)
        assert isinstance(call, Call)
        settled = trio.Event()
        call.when_settled = settled.set
        with trio.fail_after(20):
            await settled.wait()
        late = ErrorCode.REQUEST_TIMED_OUT
        assert answers([(count, call)]) == [[(0, late, -1), (1, late, -1)]] * 2
        disk.release()


async def test_only_the_partition_whose_leader_goes_is_refused(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node, flush="commit"), connect(node)
        client.ask(spread((0, batch()), (1, batch())))
        await hold_once_committed(disk, topic)
        ((count, call),) = client.ask_all([spread((0, batch()), (1, batch())) for _ in range(2)])
        topic.replicas[0].close()
        assert isinstance(call, Call)
        assert not call.is_settled, "nobody knows yet what becomes of the other"
        disk.release()
        gone = (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert answers([(count, call)]) == [[gone, (1, 0, 1)], [gone, (1, 0, 2)]]


@pytest.mark.parametrize(
    "other",
    [
        spread((0, batch(b"b")), (1, batch(b"b")), acks=1),
        spread((0, batch(b"b")), (1, batch(b"b")), timeout_ms=7),
    ],
)
async def test_a_burst_ends_before_a_request_that_asks_for_something_else(
    tmp_path: Path, connect: Connect, other: ProduceRequest
) -> None:
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, batch(b"0")), (1, batch(b"1"))))
        given = client.ask_all([spread((0, batch(b"a"))), spread((0, batch(b"a"))), other])
        assert taken(given) == [2, 1]
        assert answers(given)[2] == [(0, 0, 3), (1, 0, 1)]
        assert stored(topic)[0] == [b"0", b"a", b"a", b"b"]


async def test_a_burst_ends_before_a_request_that_is_held_and_nothing_of_that_is_appended(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, batch(b"0")), (1, batch(b"1"))))
        topic.replicas[2].member.pause_writes()
        asked = [
            spread((0, batch(b"a"))),
            spread((0, batch(b"b"))),
            spread((0, batch()), (2, batch())),
        ]
        with pytest.raises(NotNow):
            client.ask_all(asked)
        assert stored(topic) == [[b"0", b"a", b"b"], [b"1"], []]


async def test_a_burst_is_written_in_pieces_that_the_journal_takes(
    tmp_path: Path, connect: Connect, appends: list[int]
) -> None:
    third = bytes(RUN_BYTES_MAX // 3 - 200)
    async with open_node(tmp_path) as node:
        topic, client = await new_topic(node), connect(node)
        client.ask(spread((0, batch(b"0")), (1, batch(b"1"))))
        appends.clear()
        asked: Sequence[ProduceRequest] = [spread((0, batch(third))) for _ in range(5)]
        assert taken(client.ask_all(asked)) == [5]
        assert appends == [3, 2]
        assert topic.replicas[0].log_end == 6


async def test_requests_with_large_batches_are_taken_one_by_one(
    tmp_path: Path, connect: Connect
) -> None:
    large = bytes(RUN_BYTES_MAX)
    async with open_node(tmp_path) as node:
        _, client = await new_topic(node), connect(node)
        asked = [spread((0, batch(large)), (1, batch(large))) for _ in range(3)]
        assert taken(client.ask_all(asked)) == [1, 1, 1]
        assert not client.session.gathers
