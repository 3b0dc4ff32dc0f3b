"""What compaction goes by is not for clients to write."""

import pytest

from tidemark.broker.replicas.admission import admit
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    build_batch,
    read_header,
)
from tidemark.protocol.records.records import Record, encode_batch

COMPACTED = TopicConfig.from_overrides({"cleanup.policy": "compact"})


def test_a_client_may_not_say_from_when_on_deletions_may_go() -> None:
    batch = encode_batch([Record(key=b"a", value=None, timestamp_ms=1)])
    assert admit(batch, COMPACTED, api_version=9, now_ms=1).record_count == 1
    header = read_header(batch)
    attributes = header.attributes | DELETE_HORIZON_BIT
    early = build_batch(batch[HEADER_BYTES:], header._replace(attributes=attributes))
    with pytest.raises(RequestError, match="leave bit 6 clear") as refused:
        admit(early, COMPACTED, api_version=9, now_ms=1)
    assert refused.value.code is ErrorCode.INVALID_RECORD
