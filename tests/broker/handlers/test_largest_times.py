"""Batches whose header has no largest timestamp, as Sarama sends them before 1.45.1."""

from pathlib import Path
from typing import Any

import pytest

from tests.broker.handlers.looking_up import offset
from tests.broker.handlers.producing import new_topic, now_ms, produce, request, stored
from tests.broker.nodes import open_node
from tidemark.broker.handlers import list_offsets
from tidemark.broker.replicas.admission import admit
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    HEADER_BYTES,
    build_batch,
    check_batch,
    iter_headers,
    read_header,
)
from tidemark.protocol.records.records import Record, encode_batch


def headless(
    *times_ms: int,
    compression: Compression = Compression.NONE,
    **fields: Any,  # Any: any field's
) -> bytes:
    """A batch with a record of each time, whose header does not say the largest."""
    records = [Record(timestamp_ms=time, key=b"k", value=b"v") for time in times_ms]
    batch = encode_batch(records, compression=compression)
    header = read_header(batch)._replace(max_timestamp=-1)._replace(**fields)
    return build_batch(batch[HEADER_BYTES:], header)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
async def test_their_records_are_found_by_time(tmp_path: Path, compression: Compression) -> None:
    base = now_ms() - 10_000
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        for times in ([base, base + 10, base + 5], [base + 20]):
            answer = await produce(node, request(headless(*times, compression=compression)))
            assert answer.error_code == ErrorCode.NONE
        for after, expected in [(-5, 0), (1, 1), (10, 1), (11, 3), (20, 3), (21, -1)]:
            assert (await offset(node, base + after)).offset == expected
        assert (await offset(node, list_offsets.MAX_TIMESTAMP)).offset == 3
        data = stored(replica)
        headers = [check_batch(data, at) for at, _ in iter_headers(data)]
        assert [header.max_timestamp for header in headers] == [base + 10, base + 20]


async def test_the_brokers_time_is_all_records_time(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, message_timestamp_type="LogAppendTime")
        answer = await produce(node, request(headless(1, 2)))
        header = check_batch(stored(replica))
        assert header.max_timestamp == answer.log_append_time_ms > 2


def test_a_time_too_far_ahead_is_refused() -> None:
    late = bytearray(headless(1000, 5000))
    config = TopicConfig.from_overrides({"message.timestamp.after.max.ms": "100"})
    with pytest.raises(RequestError, match="timestamp 5000 is 4000 ms ahead") as refused:
        admit(late, config, api_version=9, now_ms=1000)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(
    "fields",
    [{"record_count": 1, "last_offset_delta": 0}, {"base_timestamp": 2**63 - 2}],
    ids=["more records than it says", "a time that no field could state"],
)
def test_what_cannot_be_made_out_is_invalid(fields: dict[str, Any]) -> None:  # Any: as there
    """And not corrupt: clients would send the same again."""
    batch = bytearray(headless(1, 5, **fields))
    config = TopicConfig.from_overrides({"message.timestamp.after.max.ms": str(2**63 - 1)})
    with pytest.raises(RequestError) as refused:
        admit(batch, config, api_version=9, now_ms=1)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_compacted_topics_take_them() -> None:
    batch = bytearray(headless(1, 2))
    config = TopicConfig.from_overrides({"cleanup.policy": "compact"})
    assert admit(batch, config, api_version=9, now_ms=1).max_timestamp == 2
