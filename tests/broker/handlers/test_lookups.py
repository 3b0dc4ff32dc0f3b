"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, InitProducerId, ApiVersions."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.looking_up import offset
from tests.broker.handlers.producing import batch, new_topic, now_ms, produce, request
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import (
    HANDLERS,
    api_versions,
    delete_records,
    init_producer_id,
    list_offsets,
    offset_for_leader_epoch,
)
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.timestamps import Look
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tidemark.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidemark.protocol.records.compression import Compression, compress
from tidemark.protocol.records.header import build_batch, read_header
from tidemark.protocol.records.records import Record, encode_batch, encode_section
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Offset


async def fill(node: Node, *times_ms: list[int], compression: Compression) -> None:
    """A batch for each list, with a record for each time."""
    await new_topic(node)
    for times in times_ms:
        records = [Record(timestamp_ms=time, value=b"v") for time in times]
        await produce(node, request(encode_batch(records, compression=compression)))


@pytest.mark.parametrize("version", range(1, 10))
async def test_l1_the_start_and_the_end_in_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()] * 3, compression=Compression.NONE)
        for timestamp, expected in ((list_offsets.EARLIEST, 0), (list_offsets.LATEST, 3)):
            for isolation in (0, 1) if version > 1 else (0,):
                found = await offset(node, timestamp, version, isolation=isolation)
                assert (found.error_code, found.offset, found.timestamp) == (0, expected, -1)


@pytest.mark.parametrize(
    ("timestamp", "since", "expected"), [(-3, 7, 1), (-4, 8, 0), (-5, 9, -1), (-6, 10, -1)]
)
async def test_l1_a_special_value_needs_its_version(
    tmp_path: Path, timestamp: int, since: int, expected: int
) -> None:
    async with open_node(tmp_path) as node:
        base = now_ms() - 10_000
        await fill(node, [base, base + 50, base + 20], compression=Compression.NONE)
        for version in range(1, 10):
            found = await offset(node, timestamp, version)
            if version < since:
                assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
            else:
                assert (found.error_code, found.offset) == (0, expected)


async def test_a_client_that_leaves_takes_its_search_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search goes on at a time: those of clients that ask and leave would keep others from
    theirs."""
    opened: list[Look] = []
    session = context(9).session

    def open_and_leave(look: Look) -> Iterator[tuple[int, Offset]]:
        opened.append(look)
        session.is_over = True
        return open_look(look)

    open_look = Look.open
    monkeypatch.setattr(Look, "open", open_and_leave)
    async with open_node(tmp_path) as node:
        times = [now_ms() - 10_000 + number for number in range(3000)]
        await fill(node, times, times, compression=Compression.LZ4)
        asked = ListOffsetsPartition(partition_index=0, timestamp=times[-1])
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked] * 2)]
        )
        answer = await list_offsets.handle(node, request, RequestContext(9, None, session))
        codes = [partition.error_code for partition in answer.topics[0].partitions]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert len(opened) == 1


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
async def test_l2_a_time_finds_the_first_record_and_not_the_batch(
    tmp_path: Path, compression: Compression
) -> None:
    async with open_node(tmp_path) as node:
        base = now_ms() - 10_000
        await fill(
            node, [base, base + 10, base + 5], [base + 20, base + 30], compression=compression
        )
        for after, expected in [(-5, 0), (0, 0), (1, 1), (10, 1), (11, 3), (25, 4), (30, 4)]:
            found = await offset(node, base + after)
            assert found.offset == expected
        assert (await offset(node, base + 25)).timestamp == base + 30


async def test_l2_nothing_found_is_minus_1_and_minus_1(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()], compression=Compression.NONE)
        found = await offset(node, now_ms() + 60_000)
        assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


async def test_l3_the_largest_timestamp_is_a_records_and_not_the_last_one_of_a_batch(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        base = now_ms() - 10_000
        await fill(node, [base, base + 90, base + 10], [base + 5], compression=Compression.NONE)
        found = await offset(node, list_offsets.MAX_TIMESTAMP)
        assert (found.offset, found.timestamp) == (1, base + 90)


@pytest.mark.parametrize(
    ("section", "codec", "first_ms"),
    [
        (b"\xff" * 60, Compression.NONE, 0),
        (compress(Compression.GZIP, b"") * 2, Compression.GZIP, 0),
        (
            encode_section([Record(timestamp_ms=-5)], base_timestamp=0),
            Compression.NONE,
            -(2**63),
        ),
    ],
    ids=["garbage", "what is not inflated", "a time that no answer could state"],
)
async def test_a_batch_whose_records_cannot_be_made_out_is_found_as_a_whole(
    tmp_path: Path, section: bytes, codec: Compression, first_ms: int
) -> None:
    async with open_node(tmp_path) as node:
        base = now_ms() - 10_000
        await fill(node, [base], compression=Compression.NONE)
        sent = read_header(encode_batch([Record(timestamp_ms=base + 20)]))
        odd = build_batch(section, sent._replace(attributes=codec, base_timestamp=first_ms))
        assert (await produce(node, request(odd))).error_code == ErrorCode.NONE
        await produce(node, request(encode_batch([Record(timestamp_ms=base + 10)])))
        for time_ms, expected in [
            (base, (base, 0)),
            (base + 1, (base + 20, 1)),
            (base + 21, (-1, -1)),
            (list_offsets.MAX_TIMESTAMP, (base + 20, 1)),
        ]:
            found = await offset(node, time_ms)
            assert (found.error_code, found.timestamp, found.offset) == (0, *expected)


def damage(segment: Path) -> None:
    """Flip a bit of the first batch's records."""
    stored = bytearray(segment.read_bytes())
    stored[read_header(stored).size_bytes - 1] ^= 1
    segment.write_bytes(stored)


async def test_a_lookup_in_a_batch_that_is_damaged_is_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()], compression=Compression.NONE)
        damage(tmp_path / "t-0" / f"{0:020}.log")
        found = await offset(node, list_offsets.MAX_TIMESTAMP)
        assert found.error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_offset_comes_with_the_epoch_of_its_record(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()], compression=Compression.NONE)
    async with open_node(tmp_path) as node:
        await produce(node, request(batch()))
        assert (await offset(node, list_offsets.EARLIEST)).leader_epoch == 0
        assert (await offset(node, list_offsets.LATEST)).leader_epoch == 1


async def test_a_lookup_is_fenced_by_epoch_and_knows_its_partitions(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, compression=Compression.NONE)
        assert (await offset(node, -1, epoch=5)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        unknown = await offset(node, -1, topic="unknown")
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def epoch_end(
    node: Node, epoch: int, *, version: int = 4, current: int = -1
) -> EpochEndOffset:
    asked = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic="t",
                partitions=[
                    OffsetForLeaderPartition(
                        partition=0, leader_epoch=epoch, current_leader_epoch=current
                    )
                ],
            )
        ]
    )
    answer = await ask(offset_for_leader_epoch.handle, node, asked, version)
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_l4_an_epoch_ends_where_the_next_one_began(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()] * 2, compression=Compression.NONE)
    async with open_node(tmp_path) as node:
        await produce(node, request(batch()))
        for epoch, expected in [(0, (0, 2)), (1, (1, 3)), (2, (-1, -1))]:
            found = await epoch_end(node, epoch, version=version)
            assert (found.leader_epoch, found.end_offset) == expected
        fenced = await epoch_end(node, 0, current=0)
        assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH


async def delete(node: Node, before: int, topic: str = "t") -> DeleteRecordsPartitionResult:
    partition = DeleteRecordsPartition(partition_index=0, offset=before)
    asked = DeleteRecordsRequest(
        timeout_ms=1_000, topics=[DeleteRecordsTopic(name=topic, partitions=[partition])]
    )
    answer = await ask(delete_records.handle, node, asked, 2)
    return answer.topics[0].partitions[0]


async def test_deleted_records_stay_deleted_through_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()] * 5, compression=Compression.NONE)
        assert (await delete(node, 3)).low_watermark == 3
        # Records that are gone already are not missed.
        assert (await delete(node, 1)).low_watermark == 3
    async with open_node(tmp_path) as node:
        assert (await offset(node, list_offsets.EARLIEST)).offset == 3
        assert (await delete(node, -1)).low_watermark == 5


@pytest.mark.parametrize(
    ("topic", "before", "code"),
    [
        ("t", 6, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_records_that_are_not_there_cannot_be_deleted(
    tmp_path: Path, topic: str, before: int, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()] * 5, compression=Compression.NONE)
        refused = await delete(node, before, topic)
        assert (refused.error_code, refused.low_watermark) == (code, -1)


@pytest.mark.parametrize(
    ("policy", "code"), [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", 0)]
)
async def test_of_a_topic_that_is_only_compacted_none_is_deleted(
    tmp_path: Path, policy: str, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        await fill(node, [now_ms()] * 5, compression=Compression.NONE)
        node.topics.replica_here("t", 0).apply_config(
            TopicConfig.from_overrides({"cleanup.policy": policy})
        )
        answer = await delete(node, 3)
        assert (answer.error_code, answer.low_watermark) == (code, -1 if code else 3)
        assert (await offset(node, list_offsets.EARLIEST)).offset == (0 if code else 3)


async def producer_id(
    node: Node,
    version: int = 5,
    *,
    transactional_id: str | None = None,
    known: tuple[int, int] = (-1, -1),
) -> InitProducerIdResponse:
    asked = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=known[0],
        producer_epoch=known[1],
    )
    return await ask(init_producer_id.handle, node, asked, version)


@pytest.mark.parametrize("version", range(6))
async def test_p2_any_producer_gets_an_id_of_its_own(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        answers = [await producer_id(node, version) for _ in range(3)]
        assert [answer.error_code for answer in answers] == [0, 0, 0]
        assert [answer.producer_epoch for answer in answers] == [0, 0, 0]
        assert len({answer.producer_id for answer in answers}) == 3


async def test_an_id_is_never_given_twice_whatever_stops_between(tmp_path: Path) -> None:
    given = set()
    for _ in range(3):
        async with open_node(tmp_path) as node:
            given |= {(await producer_id(node)).producer_id for _ in range(2)}
    assert len(given) == 6


async def test_p9_a_producer_that_has_an_id_gets_another_at_epoch_0(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        first = await producer_id(node)
        again = await producer_id(node, known=(first.producer_id, 0))
        assert (again.error_code, again.producer_epoch) == (0, 0)
        assert again.producer_id != first.producer_id
        half = await producer_id(node, known=(first.producer_id, -1))
        assert half.error_code == ErrorCode.INVALID_REQUEST


async def test_an_empty_transactional_id_is_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        refused = await producer_id(node, transactional_id="")
        assert ErrorCode(refused.error_code) is ErrorCode.INVALID_REQUEST


async def test_a_transactional_id_that_nobody_coordinates_yet_is_to_be_looked_for(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        refused = await producer_id(node, transactional_id="tx")
        assert ErrorCode(refused.error_code) is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(5))
async def test_api_versions_lists_what_has_a_handler_and_nothing_else(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path) as node:
        asked = ApiVersionsRequest(client_software_name="c", client_software_version="1.0")
        answer = await ask(api_versions.handle, node, asked, version)
        listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        assert set(listed) == set(HANDLERS)
        assert all(listed[key] == (APIS[key].min_version, APIS[key].max_version) for key in listed)
        # KAFKA-18659: old librdkafka compresses only if it is told of versions nobody speaks.
        assert listed[0][0] == 0


@pytest.mark.parametrize("version", [3, 4])
async def test_tools_are_told_which_kafka_this_is_like(tmp_path: Path, version: int) -> None:
    """Kafbat UI looks for the release of this level, and does without what came later."""
    async with open_node(tmp_path) as node:
        asked = ApiVersionsRequest(client_software_name="c", client_software_version="1.0")
        answer = await ask(api_versions.handle, node, asked, version)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        most = {each.name: each.max_version for each in answer.supported_features}
        assert levels["metadata.version"] == most["metadata.version"] == 25, "4.0-IV3"


async def test_p14_clients_may_leave_it_to_leaders_to_add_partitions(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        asked = ApiVersionsRequest(client_software_name="c", client_software_version="1.0")
        answer = await ask(api_versions.handle, node, asked, 4)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        assert levels["transaction.version"] == 2
        assert answer.finalized_features_epoch >= 0


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("-a", "1"), ("a b", "1"), ("a", ""), ("a", "1.")]
)
async def test_a5_the_clients_name_and_version_must_be_sane(
    tmp_path: Path, name: str, version: str
) -> None:
    async with open_node(tmp_path) as node:
        asked = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = await ask(api_versions.handle, node, asked, 3)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_a_long_name_of_a_client_is_looked_through_once(tmp_path: Path) -> None:
    """It is as long as its frame, and everybody waits for it: 3 s for one of 100 MiB, once."""
    letters = "a" * 10_000_000
    async with open_node(tmp_path) as node:

        def seconds(name: str) -> float:
            started = time.process_time()
            asked = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            api_versions.handle(node, asked, context(3))
            return time.process_time() - started

        taken = max([seconds(letters) for _ in range(3)])
        assert min([seconds(letters + "-") for _ in range(3)]) < 4 * taken
