"""Frames between brokers: what goes in comes out, and no client's message is among them."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.values import A_FEW, RandomValues, random_values
from tidemark.protocol.errors import MalformedMessage, ProtocolError, UnsupportedVersion
from tidemark.protocol.messages.peer.appends import AppendRequestData, AppendRequests
from tidemark.protocol.messages.peer.entries import EntryData
from tidemark.protocol.messages.peer.heartbeat import PeerHeartbeat
from tidemark.protocol.messages.peer.versions import GREETING_VERSION, LAST_VERSION
from tidemark.protocol.peer_frames import (
    decode_body,
    decode_peer_header,
    decode_peer_response_header,
    encode_peer_request,
    encode_peer_response,
)
from tidemark.protocol.peer_registry import PEER_APIS, PeerApi, peer_api_of
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import ZERO_UUID

by_name = pytest.mark.parametrize("api", PEER_APIS.values(), ids=lambda api: api.name)


class InFile:
    """Records that are not in memory."""

    def __len__(self) -> int:
        return 5


def append(*records: object) -> AppendRequests:
    entries = [
        EntryData(epoch=0, base_offset=0, end_offset=1, begins=None, records=each)  # type: ignore[arg-type]  # objects of several kinds
        for each in records
    ]
    data = AppendRequestData(
        topic_id=ZERO_UUID,
        partition=0,
        epoch=0,
        prev_epoch=0,
        prev_offset=0,
        committed_epoch=0,
        committed_offset=0,
        clean_at_epoch=-1,
        clean_at_offset=-1,
        ends_doubt=0,
        entries=entries,
    )
    return AppendRequests(requests=[data])


@by_name
def test_a_request_comes_out_as_it_went_in(api: PeerApi) -> None:
    correlation_id = 0 if api.response is None else 7
    version = api.request.last_version

    @A_FEW
    @given(random_values())
    def check(values: RandomValues) -> None:
        message = values.struct(api.request, version)
        frame = b"".join(encode_peer_request(message, version, correlation_id))  # type: ignore[arg-type]  # all of it is in memory
        assert len(frame) - 4 == int.from_bytes(frame[:4])
        header, body = decode_peer_header(memoryview(frame)[4:])
        assert header == (api, version, correlation_id)
        assert decode_body(api.request, header.body_version, body) == message
        assert peer_api_of(type(message)) is api

    check()


@by_name
def test_a_response_comes_out_as_it_went_in(api: PeerApi) -> None:
    if api.response is None:
        return
    version = api.response.last_version
    message = RandomValues(1).struct(api.response, version)
    frame = b"".join(encode_peer_response(message, version, 9))  # type: ignore[arg-type]  # all of it is in memory
    correlation_id, body = decode_peer_response_header(memoryview(frame)[4:])
    assert correlation_id == 9
    assert decode_body(api.response, version, body) == message


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_a_protocol_error(data: bytes) -> None:
    for api in PEER_APIS.values():
        start = pack(">hhi", api.key, api.request.last_version, 0 if api.response is None else 1)
        try:
            header, body = decode_peer_header(memoryview(start + data))
            decode_body(header.api.request, header.body_version, body)
        except ProtocolError:
            pass


def test_no_key_is_one_of_the_clients() -> None:
    assert not APIS.keys() & PEER_APIS.keys()
    with pytest.raises(UnsupportedVersion):
        decode_peer_header(memoryview(pack(">hhi", 3, 1, 1)))


@pytest.mark.parametrize(
    ("key", "version", "correlation_id"),
    [(10_010, 1, 0), (10_010, LAST_VERSION + 1, 0), (10_000, LAST_VERSION, 1)],
)
def test_another_version_is_refused(key: int, version: int, correlation_id: int) -> None:
    with pytest.raises(UnsupportedVersion):
        decode_peer_header(memoryview(pack(">hhi", key, version, correlation_id)))


@pytest.mark.parametrize(("key", "correlation_id"), [(10_010, 1), (10_000, 0), (10_000, -1)])
def test_what_is_one_way_is_no_call_and_a_call_is_not_one_way(
    key: int, correlation_id: int
) -> None:
    version = GREETING_VERSION if key == 10_000 else LAST_VERSION
    with pytest.raises(MalformedMessage):
        decode_peer_header(memoryview(pack(">hhi", key, version, correlation_id)))


@pytest.mark.parametrize("size", range(8))
def test_a_frame_too_short_for_its_header_is_refused(size: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_peer_header(memoryview(bytes(size)))


def test_records_in_files_stay_parts_of_their_own() -> None:
    in_file = InFile()
    first, second, third = encode_peer_request(append(b"abc", in_file, b"def"), LAST_VERSION)
    assert second is in_file
    assert isinstance(first, bytes)
    assert isinstance(third, bytes)
    assert int.from_bytes(first[:4]) == len(first) + len(in_file) + len(third) - 4


def test_large_batches_in_memory_are_not_copied() -> None:
    large = bytes(100_000)
    assert any(part is large for part in encode_peer_request(append(b"abc", large), LAST_VERSION))


def test_what_lies_in_a_buffer_is_copied() -> None:
    buffer = bytearray(b"x" * 100_000)
    parts = encode_peer_request(append(memoryview(buffer)), LAST_VERSION)
    buffer[:] = b"y" * 100_000
    assert b"".join(parts).count(b"x") >= 100_000  # type: ignore[arg-type]  # all of it is in memory


def test_elements_are_bounded_by_the_bytes_that_are_there() -> None:
    body = pack(">qqqql", 0, 0, 0, 0, 2**31 - 1) + bytes(100)
    with pytest.raises(MalformedMessage):
        decode_body(PeerHeartbeat, 1, body)
