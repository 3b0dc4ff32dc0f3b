"""Bytes that are not the protocol: each is refused, counted, and nobody else notices."""

import struct

import pytest

from tests.system.attacks import Bystander, Peer, metric, rss_bytes
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response
from tidemark.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidemark.protocol.registry import API_VERSIONS_KEY, APIS
from tidemark.testing.process import BrokerProcess

pytestmark = pytest.mark.usefixtures("unharmed")

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(194)
MIB = 1024 * 1024


def bad_inputs(broker: BrokerProcess, kind: str) -> float:
    return metric(broker, "tidemark_bad_input_total", kind=kind)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (bytes(range(255, 127, -1)), "frame_too_large"),
        (b"\xff" * 64, "frame_too_large"),
        (struct.pack(">i", 2**31 - 1), "frame_too_large"),
        (struct.pack(">i", -(2**31)), "frame_too_large"),
        (struct.pack(">i", 100 * MIB + 1), "frame_too_large"),
        (TLS_HELLO, "frame_too_large"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "frame_too_large"),
        (struct.pack(">i", 0), "malformed_message"),
        (struct.pack(">ihhi", 8, 3, 9, 7), "malformed_message"),
        (struct.pack(">ihhih", 10, 12, 0, 7, 300), "malformed_message"),
        (struct.pack(">ihhihi", 14, 42, 1, 7, -1, 2**31 - 1), "malformed_message"),
        (struct.pack(">ihhih", 10, 0x7FFF, 0, 7, -1), "unsupported_version"),
        (struct.pack(">ihhih", 10, 3, 99, 7, -1), "unsupported_version"),
        (struct.pack(">ihhih", 10, 0, -1, 7, -1), "unsupported_version"),
    ],
    ids=[
        "garbage",
        "ones",
        "2 GiB",
        "a negative length",
        "one byte over the limit",
        "TLS",
        "HTTP",
        "an empty frame",
        "half a header",
        "a client id beyond the frame",
        "an array beyond the frame",
        "an unknown API",
        "an unknown version",
        "a negative version",
    ],
)
def test_what_is_no_request_ends_the_connection(
    victim: BrokerProcess, data: bytes, kind: str
) -> None:
    before = bad_inputs(victim, kind)
    with Peer(victim.bootstrap) as peer:
        peer.send(data)
        assert peer.is_closed()
    assert bad_inputs(victim, kind) == before + 1


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(
    victim: BrokerProcess,
) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.send_frame(struct.pack(">hhih", API_VERSIONS_KEY, 99, 7, -1) + b"\xff" * 20)
        api = APIS[API_VERSIONS_KEY]
        _, answer = decode_response(api, 0, peer.read_frame())
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        (own,) = answer.api_keys
        assert (own.api_key, own.max_version) == (api.key, api.max_version)
        # And the connection goes on.
        version = own.max_version
        request = ApiVersionsRequest(client_software_name="p", client_software_version="1")
        assert peer.ask(request, version, ApiVersionsResponse).error_code == ErrorCode.NONE


@pytest.mark.parametrize("size", [1, 3, 4, 5, 20])
def test_a_frame_that_ends_in_the_middle_is_nothing(victim: BrokerProcess, size: int) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.send((struct.pack(">ihhih", 100, 3, 9, 7, -1) + bytes(90))[:size])
    assert victim.is_running


def empty_groups(count: int) -> bytes:
    """A DeleteGroups with that many empty names, a byte each."""
    varint, left = b"", count + 1
    while left > 0x7F:
        varint, left = varint + bytes((left & 0x7F | 0x80,)), left >> 7
    header = struct.pack(">hhihb", 42, 2, 7, -1, 0)
    return header + varint + bytes((left,)) + b"\x01" * count + b"\0"


def empty_fetches(count: int) -> bytes:
    """A Fetch 4 of that many topics with empty names and no partitions."""
    header = struct.pack(">hhih", 1, 4, 7, -1) + struct.pack(">iiiib", -1, 0, 0, 1000, 0)
    return header + struct.pack(">i", count) + struct.pack(">hi", 0, 0) * count


@pytest.mark.parametrize(
    "frame", [empty_groups(60 * MIB), empty_fetches(10 * MIB)], ids=["strings", "structs"]
)
def test_a_large_frame_of_tiny_elements_is_not_made_into_objects(
    victim: BrokerProcess, frame: bytes
) -> None:
    before, memory = bad_inputs(victim, "malformed_message"), rss_bytes(victim.pid)
    with Peer(victim.bootstrap) as peer:
        peer.send_frame(frame)
        assert peer.is_closed()
    assert bad_inputs(victim, "malformed_message") == before + 1
    # The frame itself, and as much again while its buffer grew.
    assert rss_bytes(victim.pid) < memory + 2.5 * len(frame)


def test_a_length_alone_takes_no_memory(victim: BrokerProcess, unharmed: Bystander) -> None:
    before, rounds = rss_bytes(victim.pid), unharmed.rounds
    peers = [Peer(victim.bootstrap) for _ in range(50)]
    for peer in peers:
        peer.send(struct.pack(">ihhih", 100 * MIB, 0, 9, 7, -1) + bytes(1000))
    with Peer(victim.bootstrap) as peer:
        peer.send(struct.pack(">i", -1))
        assert peer.is_closed(), "it has looked at all that came before"
    assert rss_bytes(victim.pid) < before + 50 * MIB
    for peer in peers:
        peer.socket.close()
    assert unharmed.rounds >= rounds
