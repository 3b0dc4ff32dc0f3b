"""Requests of every version of every API, of random values, cut off, or with bits that flipped.

Each is answered in its own words or ends its connection, and nobody else notices.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from tests.protocol.values import RandomValues, versions_of
from tests.system.attacks import Peer, rss_bytes
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.produce import ProduceRequest
from tidemark.protocol.registry import APIS, Api
from tidemark.testing.process import BrokerProcess, open_broker_process

pytestmark = pytest.mark.usefixtures("other")

MIB = 1024 * 1024
LENGTH = struct.Struct(">i")
HEADER_BYTES = 8
"""The API, its version and the correlation id: what flips in these is another request."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One of its own: somebody may ask it to lead nothing, and be heard."""
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    folder = tmp_path_factory.mktemp("any") / "data"
    with open_broker_process(folder, settings=settings) as process:
        yield process
        # Many complaints of one kind are counted, and not written one by one.
        assert len(process.log) < MIB
        assert "Traceback" not in process.log
        assert process.stop() == 0


def bodies(api: Api, version: int, random: Random) -> Iterator[bytes]:
    """The frame of a random request, whole, then shorter, then with bits that flipped."""
    whole = RandomValues(random.getrandbits(32)).struct(api.request, version)
    frame = encode_request(whole, version, 7, "any")[LENGTH.size :]
    yield frame
    yield frame[: random.randrange(len(frame))]
    flipped = bytearray(frame)
    for _ in range(3):
        flipped[random.randrange(HEADER_BYTES, len(frame))] ^= 1 << random.randrange(8)
    yield bytes(flipped)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_any_request_is_answered_or_ends_its_connection(broker: BrokerProcess, api: Api) -> None:
    random = Random(api.key)
    before = rss_bytes(broker.pid)
    for version in versions_of(api.request):
        whole, *others = bodies(api, version, random)
        with Peer(broker.bootstrap) as peer, suppress(EOFError, ConnectionError):
            peer.send_frame(whole)
            if api.request is not ProduceRequest:  # which asks for no answer with acks=0
                assert decode_response(api, version, peer.read_frame())[0] == 7
        for frame in others:
            with Peer(broker.bootstrap) as peer, suppress(EOFError, ConnectionError):
                peer.send_frame(frame)
                # It may be whole again, and wait for something: not for one who has left.
                peer.socket.shutdown(socket.SHUT_WR)
                while peer.read_frame():
                    pass
    assert broker.is_running
    assert rss_bytes(broker.pid) - before < 16 * MIB
