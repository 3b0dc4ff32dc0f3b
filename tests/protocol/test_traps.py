"""What clients really send, and what breaks them: each of these has cut somebody off somewhere."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from tidemark.protocol import codec
from tidemark.protocol.errors import ErrorCode, MalformedMessage
from tidemark.protocol.messages import (
    api_versions,
    describe_groups,
    fetch,
    join_group,
    metadata,
    offset_commit,
)
from tidemark.protocol.schema import (
    INT32,
    RECORDS,
    STRING,
    Message,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)
from tidemark.protocol.schema.construct_codec import ConstructCodec
from tidemark.protocol.schema.straight_line import StraightLineCodec


@pytest.mark.parametrize("body", [b"", b"\x02a\x02b\x00", b"\xff" * 20])
def test_trap_a3_the_answer_to_an_unknown_version_is_a_body_of_version_0(body: bytes) -> None:
    own_range = api_versions.ApiVersion(api_key=18, min_version=0, max_version=4)
    answer = api_versions.ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own_range]
    )
    encoded = codec.encode(answer, 0)
    assert encoded == bytes.fromhex("0023 00000001 0012 0000 0004")
    assert codec.decode(api_versions.ApiVersionsResponse, 0, encoded + body).error_code == 35


@pytest.mark.parametrize("trailing", [b"\x00", b"\x00\x01\x00", b"\xff" * 100])
def test_trap_a7_trailing_bytes_are_tolerated(trailing: bytes) -> None:
    asked = metadata.MetadataRequest(topics=None)
    for version in (1, 8, 9, 12):
        data = codec.encode(asked, version) + trailing
        assert codec.decode(metadata.MetadataRequest, version, data) == asked
    heartbeats = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=())
    for version in (4, 11, 12):
        data = codec.encode(heartbeats, version) + trailing
        assert codec.decode(fetch.FetchRequest, version, data) == heartbeats


@pytest.mark.parametrize("version", [4, 11, 12])
def test_trap_a8_a_topic_may_appear_twice_in_one_fetch(version: int) -> None:
    def asked(topic: str, partition: int) -> fetch.FetchTopic:
        return fetch.FetchTopic(
            topic=topic,
            partitions=(
                fetch.FetchPartition(
                    partition=partition, fetch_offset=partition, partition_max_bytes=1
                ),
            ),
        )

    topics = (asked("a", 1), asked("b", 0), asked("a", 0))
    request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
    data = codec.encode(request, version)
    assert codec.decode(fetch.FetchRequest, version, data).topics == topics


@struct
class Inner(Struct):
    number: int = wire(INT32, "A number.")


@message(versions=(0, 1), flexible_since=1)
class Odd(Message):
    """What no message of ours has, but the protocol does: a struct that may be null."""

    inner: Inner | None = wire(nested(Inner), "A struct that may be null.", null_since=0)
    inners: Sequence[Inner] = wire(array(Inner), "Structs.")
    records: bytes | memoryview | None = wire(RECORDS, "Records.", null_since=0)
    late: str = wire(STRING, "Since version 1.", since=1, tag=0, default="")
    last: int = wire(INT32, "The highest tag.", since=1, tag=200, default=-1)


both_codecs = pytest.mark.parametrize("make", [ConstructCodec, StraightLineCodec])
MakeCodec = type[ConstructCodec[Odd]] | type[StraightLineCodec[Odd]]

PRESENT = Odd(inner=Inner(number=1), inners=(Inner(number=2),), records=b"r")
ABSENT = Odd(inner=None, inners=(), records=None)
TAGGED = Odd(inner=None, inners=(), records=b"", late="é", last=7)

ODD_BYTES = [
    (0, PRESENT, "01 00000001  00000001 00000002  00000001 72"),
    (0, ABSENT, "ff  00000000  ffffffff"),
    (1, PRESENT, "01 00000001 00  02 00000002 00  02 72  00"),
    (1, ABSENT, "ff  01  00  00"),
    (1, TAGGED, "ff  01  01  02  00 03 03c3a9  c801 04 00000007"),
]


@both_codecs
@pytest.mark.parametrize(("version", "value", "encoded"), ODD_BYTES)
def test_trap_a9_compact_lengths_tags_and_null_structs(
    make: MakeCodec, version: int, value: Odd, encoded: str
) -> None:
    one = make(Odd, version)
    assert b"".join(one.encode(value)) == bytes.fromhex(encoded)  # type: ignore[arg-type]  # in memory
    assert one.decode(memoryview(bytes.fromhex(encoded))) == value


@both_codecs
def test_trap_a9_unknown_tags_are_skipped_everywhere(make: MakeCodec) -> None:
    unknown = "01 05 02 aabb"
    data = bytes.fromhex(f"01 00000001 {unknown}  02 00000002 {unknown}  02 72  {unknown}")
    assert make(Odd, 1).decode(memoryview(data)) == PRESENT


@both_codecs
def test_trap_a9_known_and_unknown_tags_may_stand_together(make: MakeCodec) -> None:
    data = bytes.fromhex("ff  01  01  03  00 03 03c3a9  64 00  c801 04 00000007")
    assert make(Odd, 1).decode(memoryview(data)) == TAGGED


@both_codecs
@pytest.mark.parametrize("tags", ["01 00 04 03c3a9ff", "01 00 02 03c3", "01 c801 03 000007"])
def test_trap_a9_a_tag_whose_size_is_not_its_contents_is_malformed(
    make: MakeCodec, tags: str
) -> None:
    with pytest.raises(MalformedMessage):
        make(Odd, 1).decode(memoryview(bytes.fromhex(f"ff 01 01 {tags}")))


def test_trap_a9_the_lengths_of_compact_records_are_varints_too() -> None:
    records = bytes(300)
    partition = fetch.PartitionData(partition_index=0, high_watermark=1, records=records)
    topic = fetch.FetchableTopicResponse(topic="t", partitions=[partition])
    encoded = codec.encode(fetch.FetchResponse(responses=[topic]), 12)
    assert b"\xad\x02" + records in encoded  # 301 = 0x2d | 2 << 7


def test_trap_a9_no_records_are_one_byte_and_not_null() -> None:
    partition = fetch.PartitionData(partition_index=0, high_watermark=1)
    topic = fetch.FetchableTopicResponse(topic="t", partitions=[partition])
    encoded = codec.encode(fetch.FetchResponse(responses=[topic]), 12)
    assert encoded.endswith(b"\x01" + b"\x00" * 3)


JOINED = join_group.JoinGroupResponse(protocol_name=None, leader="", member_id="m", members=[])


@pytest.mark.parametrize("version", range(7))
def test_trap_a10_no_protocol_name_is_an_empty_string_before_version_7(version: int) -> None:
    data = codec.encode(JOINED, version)
    assert codec.decode(join_group.JoinGroupResponse, version, data).protocol_name == ""


@pytest.mark.parametrize("version", [7, 8, 9])
def test_trap_a10_no_protocol_name_is_null_from_version_7(version: int) -> None:
    data = codec.encode(JOINED, version)
    assert codec.decode(join_group.JoinGroupResponse, version, data).protocol_name is None


def test_trap_a10_a_topic_has_no_name_only_from_version_12_of_metadata() -> None:
    topic = metadata.MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=UUID(int=1), partitions=()
    )
    response = metadata.MetadataResponse(brokers=[], topics=[topic])
    with pytest.raises(MalformedMessage):
        codec.encode(response, 11)
    assert codec.decode(metadata.MetadataResponse, 12, codec.encode(response, 12)).topics == (
        topic,
    )


@pytest.mark.parametrize("version", [4, 11, 12])
def test_trap_a10_aborted_transactions_may_be_null_or_empty(version: int) -> None:
    def round_trip(
        aborted: tuple[fetch.AbortedTransaction, ...] | None,
    ) -> fetch.PartitionData:
        partition = fetch.PartitionData(
            partition_index=0, high_watermark=1, aborted_transactions=aborted
        )
        topic = fetch.FetchableTopicResponse(topic="t", partitions=[partition])
        data = codec.encode(fetch.FetchResponse(responses=[topic]), version)
        return codec.decode(fetch.FetchResponse, version, data).responses[0].partitions[0]

    assert round_trip(None).aborted_transactions is None
    assert round_trip(()).aborted_transactions == ()


def test_what_a_version_cannot_say_is_refused_unless_it_may_be_ignored() -> None:
    group = describe_groups.DescribedGroup(
        error_code=69,
        error_message="no such group",
        group_id="g",
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=[],
    )
    response = describe_groups.DescribeGroupsResponse(groups=[group])
    codec.encode(response, 6)
    with pytest.raises(MalformedMessage, match="error_message"):
        codec.encode(response, 5)

    ignorable = offset_commit.OffsetCommitRequest(
        group_id="g", member_id="m", retention_time_ms=5, topics=[]
    )
    data = codec.encode(ignorable, 9)
    assert codec.decode(offset_commit.OffsetCommitRequest, 9, data).retention_time_ms == -1
