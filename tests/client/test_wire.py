import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.frame_buffer import FrameBuffer
from tidemark.client.wire import Wire
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import ErrorCode, FrameTooLarge, MalformedMessage, RequestError
from tidemark.protocol.frames import decode_request_header, encode_response
from tidemark.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message

API_VERSIONS = api_of(ApiVersionsRequest)
HEARTBEAT = api_of(HeartbeatRequest)
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def wire() -> Wire:
    return Wire("me", software_version="1", frame_bytes_max=1000)


def feed(wire: Wire, data: bytes) -> list[Message]:
    """Give the wire bytes as a socket would, as many as there is space for at a time."""
    messages: list[Message] = []
    while data:
        space = wire.space()
        count = min(len(space), len(data))
        space[:count], data = data[:count], data[count:]
        messages += wire.received(count)
    return messages


def response(message: Message, version: int, correlation_id: int) -> bytes:
    api = API_VERSIONS if isinstance(message, ApiVersionsResponse) else HEARTBEAT
    parts = encode_response(message, api, version, correlation_id)
    return b"".join(part for part in parts if isinstance(part, bytes))


def versions(*ranges: tuple[int, int, int], code: ErrorCode = ErrorCode.NONE) -> Message:
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in ranges],
    )


def settled(*ranges: tuple[int, int, int]) -> Wire:
    """A wire to a broker that speaks this, and the hello besides."""
    result = wire()
    result.hello()
    (answer,) = feed(result, response(versions(*ranges), 4, 0))
    assert isinstance(answer, ApiVersionsResponse)
    assert result.settle_versions(answer) is None
    return result


def version_of(frame: bytes | None) -> int:
    assert frame is not None
    return decode_request_header(memoryview(frame)[4:])[0].api_version


def test_the_newest_common_version_is_spoken() -> None:
    assert settled((12, 0, 2)).version(HeartbeatRequest) == 2
    assert settled((12, 0, 99)).version(HeartbeatRequest) == HEARTBEAT.max_version


def test_an_api_that_the_broker_has_only_in_other_versions_is_refused_by_name() -> None:
    for ranges in ([], [(12, 50, 60)], [(999, 0, 1)]):
        with pytest.raises(RequestError, match="UNSUPPORTED_VERSION: the broker has no Heartbeat"):
            settled(*ranges).version(HeartbeatRequest)


def test_a_limit_keeps_from_what_a_broker_claims_to_speak() -> None:
    limited = Wire("me", software_version="1", frame_bytes_max=1000, version_max={12: 1})
    limited.hello()
    (answer,) = feed(limited, response(versions((12, 0, 4)), 4, 0))
    assert isinstance(answer, ApiVersionsResponse)
    limited.settle_versions(answer)
    assert limited.version(HeartbeatRequest) == 1


@pytest.mark.parametrize(("stated", "following"), [([(18, 0, 2)], 2), ([(18, 0, 9)], 3), ([], 0)])
def test_a_broker_that_does_not_know_our_api_versions_is_asked_in_one_it_states(
    stated: list[tuple[int, int, int]], following: int
) -> None:
    client = wire()
    assert version_of(client.hello()) == API_VERSIONS.max_version
    refusal = versions(*stated, code=ErrorCode.UNSUPPORTED_VERSION)
    (answer,) = feed(client, response(refusal, 0, 0))
    assert isinstance(answer, ApiVersionsResponse)
    assert version_of(client.settle_versions(answer)) == following


def test_a_refusal_in_a_format_of_its_own_is_still_a_refusal() -> None:
    client = wire()
    client.hello()
    body = (0).to_bytes(4, "big") + (35).to_bytes(2, "big") + b"\x01\x00\x12\x00\x00"
    (answer,) = feed(client, len(body).to_bytes(4, "big") + body)
    assert isinstance(answer, ApiVersionsResponse)
    assert version_of(client.settle_versions(answer)) == 0


def test_a_broker_that_refuses_every_version_is_given_up() -> None:
    client = wire()
    client.hello()
    answers: list[ApiVersionsResponse] = []
    for correlation_id in (0, 1):
        refusal = versions(code=ErrorCode.UNSUPPORTED_VERSION)
        (answer,) = feed(client, response(refusal, 0, correlation_id))
        assert isinstance(answer, ApiVersionsResponse)
        answers.append(answer)
        if correlation_id == 0:
            client.settle_versions(answer)
    with pytest.raises(RequestError, match="no version of ApiVersions"):
        client.settle_versions(answers[1])


def test_answers_are_matched_to_requests_in_their_order() -> None:
    client = settled((12, 0, 4))
    client.request(BEAT)
    client.request(BEAT)
    assert client.awaited == 2
    answers = [HeartbeatResponse(error_code=code) for code in (27, 0)]
    got = feed(client, response(answers[0], 4, 1) + response(answers[1], 4, 2))
    assert got == answers
    assert client.awaited == 0


def test_an_answer_to_another_request_ends_it() -> None:
    client = settled((12, 0, 4))
    client.request(BEAT)
    with pytest.raises(MalformedMessage, match="request 5 where 1's was due"):
        feed(client, response(HeartbeatResponse(), 4, 5))


def test_an_answer_to_nothing_ends_it() -> None:
    with pytest.raises(MalformedMessage, match="no request"):
        feed(settled((12, 0, 4)), response(HeartbeatResponse(), 4, 1))


def test_a_request_that_gets_no_answer_is_not_waited_for() -> None:
    client = settled((12, 0, 4))
    client.request(BEAT, is_answered=False)
    client.request(BEAT)
    assert feed(client, response(HeartbeatResponse(), 4, 2)) == [HeartbeatResponse()]


def test_before_versions_are_settled_nothing_else_can_be_asked() -> None:
    with pytest.raises(RequestError, match="Metadata"):
        wire().request(MetadataRequest(topics=[]))


@given(
    sizes=st.lists(st.sampled_from([0, 1, 3, 500, 65_531, 65_532, 65_533, 200_000]), max_size=6),
    cuts=st.lists(st.integers(1, 70_000), max_size=20),
)
def test_any_split_of_the_stream_gives_the_same_frames(sizes: list[int], cuts: list[int]) -> None:
    frames = [bytes([index % 256]) * size for index, size in enumerate(sizes)]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    buffer, got = FrameBuffer(1_000_000), []
    while stream:
        space = buffer.space()
        cut = cuts.pop() if cuts else len(space)
        count = min(len(space), len(stream), cut)
        space[:count], stream = stream[:count], stream[count:]
        got += [bytes(frame) for frame in buffer.received(count)]
    assert got == frames


def test_a_large_frame_is_received_where_one_was_that_nobody_looks_into() -> None:
    buffer = FrameBuffer(1_000_000)
    buffer.memory = Buffers()

    def receive(content: bytes) -> memoryview:
        stream = len(content).to_bytes(4, "big") + content
        while True:
            space = buffer.space()
            count = min(len(space), len(stream))
            space[:count], stream = stream[:count], stream[count:]
            if frames := buffer.received(count):
                return frames[0]

    first, second = receive(b"a" * 200_000), receive(b"b" * 200_000)
    assert (bytes(first), bytes(second)) == (b"a" * 200_000, b"b" * 200_000)
    first_view = np.frombuffer(first, np.uint8)[1:].data
    where = pa.py_buffer(second).address
    del first, second
    third = receive(b"c" * 190_000)
    assert pa.py_buffer(third).address == where
    assert (bytes(first_view), bytes(third)) == (b"a" * 199_999, b"c" * 190_000)


@pytest.mark.parametrize("length", [-1, 101])
def test_a_length_beyond_the_limit_is_refused_before_anything_is_allocated(length: int) -> None:
    buffer = FrameBuffer(100)
    buffer.space()[:4] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(FrameTooLarge):
        buffer.received(4)


def test_a_small_frame_outlives_what_is_received_after_it() -> None:
    buffer = FrameBuffer(100)
    buffer.space()[:6] = b"\x00\x00\x00\x02ab"
    (first,) = buffer.received(6)
    buffer.space()[:6] = b"\x00\x00\x00\x02cd"
    buffer.received(6)
    assert bytes(first) == b"ab"
