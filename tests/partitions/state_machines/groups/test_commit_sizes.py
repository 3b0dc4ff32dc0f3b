"""What the commits of one request may take in the log."""

from collections.abc import Mapping

import pytest

from tests.partitions.state_machines.groups.driver import Coordinator
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.records import encode_record
from tidemark.partitions.state_machines.groups.requests import Commit, OffsetToCommit
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.header import HEADER_BYTES
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import TopicPartition

LONG = "g" * 32_000


def batch_of(log: list[LogRecord]) -> bytes:
    encoded = map(encode_record, log)
    return encode_batch([Record(timestamp_ms=1, key=key, value=value) for key, value in encoded])


def commit(
    groups: Coordinator,
    offsets: Mapping[TopicPartition, OffsetToCommit],
    *,
    group: str = LONG,
    retention_ms: int = -1,
) -> ErrorCode:
    request = Commit(
        group_id=group, generation=-1, member_id="", offsets=offsets, retention_ms=retention_ms
    )
    return groups.committed(groups.ask(request)).error


def test_what_is_too_much_is_refused_and_the_next_commit_is_taken() -> None:
    """The name of a group is in every record of it."""
    groups = Coordinator()
    partitions = [TopicPartition("orders", each) for each in range(600)]
    many = dict.fromkeys(partitions, OffsetToCommit(offset=5))
    few = dict.fromkeys(partitions[:500], OffsetToCommit(offset=5))
    assert commit(groups, many) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert groups.log == []
    assert commit(groups, few) is ErrorCode.NONE
    assert 0 < GroupSettings().commit_bytes_max - len(batch_of(groups.log)) < len(LONG) * 100


@pytest.mark.parametrize("retention_ms", [-1, 2**63 - 1])
@pytest.mark.parametrize("count", [1, 100])
def test_a_batch_is_no_larger_than_was_reckoned(count: int, retention_ms: int) -> None:
    largest = OffsetToCommit(offset=2**63 - 1, leader_epoch=2**31 - 1, metadata="é" * 100)
    offsets = {TopicPartition("o" * 249, 2**31 - 1 - each): largest for each in range(count)}
    groups = Coordinator()
    assert commit(groups, offsets, retention_ms=retention_ms) is ErrorCode.NONE
    records_bytes = len(batch_of(groups.log)) - HEADER_BYTES
    small = Coordinator(GroupSettings(commit_bytes_max=records_bytes - 1))
    refused = commit(small, offsets, retention_ms=retention_ms)
    assert refused is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
