"""Frames and headers."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.protocol.values import A_FEW, RandomValues, random_values
from tidemark.protocol import codec
from tidemark.protocol.errors import FrameTooLarge, MalformedMessage, UnsupportedVersion
from tidemark.protocol.frames import (
    FrameDecoder,
    RequestHeader,
    decode_correlation_id,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from tidemark.protocol.messages.heartbeat import HeartbeatRequest
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.protocol.registry import APIS, Api

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def frame_of(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@given(
    frames=st.lists(st.binary(max_size=20)),
    cuts=st.lists(st.integers(1, 9)),
)
def test_any_split_of_the_stream_gives_the_same_frames(
    frames: list[bytes], cuts: list[int]
) -> None:
    stream, decoder, got = b"".join(map(frame_of, frames)), FrameDecoder(20), list[bytes]()
    for cut in cuts:
        got += decoder.feed(stream[:cut])
        stream = stream[cut:]
    assert got + decoder.feed(stream) == frames


@given(st.lists(st.binary(max_size=12)))
def test_any_bytes_give_frames_or_a_refusal(pieces: list[bytes]) -> None:
    decoder = FrameDecoder(frame_bytes_max=8)
    with suppress(FrameTooLarge):
        for piece in pieces:
            assert all(len(frame) <= 8 for frame in decoder.feed(piece))


NOT_LENGTHS = {
    "minus one": b"\xff\xff\xff\xff",
    "the most negative": b"\x80\x00\x00\x00",
    "2 GiB": b"\x7f\xff\xff\xff",
    "HTTP": b"GET / HTTP/1.1\r\n",
    "TLS": b"\x16\x03\x01\x02\x00",
}


@pytest.mark.parametrize("start", NOT_LENGTHS.values(), ids=NOT_LENGTHS)
def test_trap_a12_a_negative_or_huge_length_is_refused_before_it_is_read(start: bytes) -> None:
    with pytest.raises(FrameTooLarge):
        FrameDecoder(frame_bytes_max=100 * 2**20).feed(start)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (b"GET / HTTP/1.1\r\n", "it speaks HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n", "it speaks HTTP"),
        (b"\x16\x03\x01\x02\x00", "it speaks TLS"),
        (b"\x15\x03\x03\x00\x02", "it speaks TLS"),
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes; the limit is 1000"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
    ],
)
def test_another_protocol_is_called_by_its_name(start: bytes, says: str) -> None:
    with pytest.raises(FrameTooLarge, match=says):
        FrameDecoder(frame_bytes_max=1000).feed(start)


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    assert FrameDecoder(frame_bytes_max=5).feed(frame_of(b"12345")) == [b"12345"]


def test_an_empty_frame_is_a_frame() -> None:
    assert FrameDecoder(frame_bytes_max=5).feed(bytes(8)) == [b"", b""]


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_requests_and_responses_go_round(api: Api) -> None:
    @A_FEW
    @given(random_values())
    def check(values: RandomValues) -> None:
        for version in range(api.spoken_min_version, api.max_version + 1):
            request = values.struct(api.request, version)
            (frame,) = FrameDecoder(2**20).feed(encode_request(request, version, 7, "me"))
            header, at = decode_request_header(frame)
            assert header == RequestHeader(api.key, version, 7, "me")
            assert codec.decode(api.request, version, frame[at:]) == request

            response = values.struct(api.response, version)
            parts = encode_response(response, api, version, correlation_id=7)
            (frame,) = FrameDecoder(2**20).feed(b"".join(map(as_bytes, parts)))
            assert decode_correlation_id(frame) == 7
            assert decode_response(api, version, frame) == (7, response)

    check()


def as_bytes(part: object) -> bytes:
    assert isinstance(part, bytes)
    return part


@pytest.mark.parametrize(("version", "tags"), [(3, b""), (4, b"\x00")])
def test_trap_a1_the_client_id_has_a_two_byte_length_in_both_headers(
    version: int, tags: bytes
) -> None:
    frame = encode_request(HEARTBEAT, version, correlation_id=258, client_id="me")
    header = b"\x00\x0c" + version.to_bytes(2, "big") + b"\x00\x00\x01\x02" + b"\x00\x02me" + tags
    assert frame[4:].startswith(header)
    assert frame[4:] == header + codec.encode(HEARTBEAT, version)


def test_trap_a1_the_client_id_may_be_null() -> None:
    frame = bytes.fromhex("000c 0000 00000007 ffff") + codec.encode(HEARTBEAT, 0)
    assert encode_request(HEARTBEAT, 0, 7, client_id=None) == frame_of(frame)
    assert decode_request_header(frame) == (RequestHeader(12, 0, 7, None), 10)


def test_trap_a1_unknown_tags_of_a_header_are_skipped() -> None:
    tags = bytes.fromhex("02 00 03 aabbcc ac02 01 dd")
    frame = bytes.fromhex("000c 0004 00000007 0000") + tags + codec.encode(HEARTBEAT, 4)
    header, at = decode_request_header(frame)
    assert codec.decode(HeartbeatRequest, header.api_version, frame[at:]) == HEARTBEAT


def test_a_header_of_nothing_but_tags_is_malformed() -> None:
    frame = bytes.fromhex("000c 0004 00000007 0000 e907") + bytes.fromhex("0a00") * 1001
    with pytest.raises(MalformedMessage, match="1001 tagged fields"):
        decode_request_header(frame)


@pytest.mark.parametrize("version", range(5))
def test_trap_a2_a_response_of_api_versions_never_has_tags_in_its_header(version: int) -> None:
    api = APIS[18]
    response = RandomValues(1).struct(api.response, version)
    (frame,) = encode_response(response, api, version, correlation_id=9)
    assert frame == frame_of(b"\x00\x00\x00\x09" + codec.encode(response, version))


@pytest.mark.parametrize(("version", "tags"), [(11, b""), (12, b"\x00")])
def test_trap_a2_other_responses_have_tags_in_their_header_when_flexible(
    version: int, tags: bytes
) -> None:
    response = FetchResponse(responses=[])
    (frame,) = encode_response(response, APIS[1], version, correlation_id=9)
    assert frame == frame_of(b"\x00\x00\x00\x09" + tags + codec.encode(response, version))


def test_trap_a3_a_version_that_is_too_new_says_whom_to_answer() -> None:
    frame = bytes.fromhex("0012 0063 00000007 0002 6d65 00") + b"who knows"
    with pytest.raises(UnsupportedVersion) as caught:
        decode_request_header(frame)
    assert (caught.value.api_key, caught.value.version, caught.value.correlation_id) == (18, 99, 7)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_is_listed_from_version_0_and_spoken_from_version_3(version: int) -> None:
    assert APIS[0].min_version == 0
    with pytest.raises(UnsupportedVersion):
        decode_request_header(bytes(2) + version.to_bytes(2, "big") + bytes(6))


def test_an_unknown_api_is_unsupported_even_without_a_client_id() -> None:
    with pytest.raises(UnsupportedVersion):
        decode_request_header(bytes.fromhex("7fff 0000 00000007"))


@given(st.binary(max_size=40))
@example(bytes.fromhex("000c 0000 00000007 0005 6d65"))
@example(bytes.fromhex("000c 0000 00000007 fffe"))
@example(bytes.fromhex("000c 0000 00000007 0001 ff"))
@example(bytes.fromhex("000c 0004 00000007 ffff ffffffff0f"))
def test_any_bytes_are_a_header_or_a_refusal(frame: bytes) -> None:
    try:
        _, at = decode_request_header(frame)
    except (MalformedMessage, UnsupportedVersion):
        return
    assert at <= len(frame)


@given(st.sampled_from(list(APIS.values())), st.binary(max_size=40))
def test_any_bytes_are_a_response_or_a_refusal(api: Api, frame: bytes) -> None:
    with suppress(MalformedMessage):
        decode_response(api, api.max_version, frame)


class FileSlice:
    """Records that are somewhere else; only their size is known."""

    def __len__(self) -> int:
        return 1000


def test_records_that_are_not_in_memory_stay_apart_and_are_counted() -> None:
    records = FileSlice()
    partition = PartitionData(partition_index=0, high_watermark=1, records=records)
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[partition, partition])]
    )
    parts = encode_response(response, APIS[1], 12, correlation_id=1)
    assert [type(part) for part in parts] == [bytes, FileSlice, bytes, FileSlice, bytes]
    assert int.from_bytes(as_bytes(parts[0])[:4], "big") == sum(map(len, parts)) - 4


def test_trap_a7_the_metadata_request_of_librdkafka_is_understood() -> None:
    """It says "all topics" with four zero bytes where one is meant, so three are left over."""
    frame = (
        bytes.fromhex("0003 000c 00000002 0007")
        + b"rdkafka"
        + bytes.fromhex("00 00000000 01 00 00")
    )
    header, at = decode_request_header(frame)
    request = codec.decode(MetadataRequest, header.api_version, frame[at:])
    assert request.topics is None
