"""TLS over a socket: what is sent comes, however the bytes on the wire are cut."""

from __future__ import annotations

import os
import socket
import ssl
import weakref
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.network.tls_stream import (
    RECORD_BYTES_MAX,
    RECORDS_AT_A_TIME,
    TURN_BYTES_MAX,
    TlsStream,
)

SMALL_BYTES = 4096


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "localhost.pem")
    return context


class Peer:
    """The client, whose bytes a test hands over as it likes."""

    def __init__(self, *, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        context = ssl.create_default_context(cafile=CERTIFICATES / "ca.pem")
        context.minimum_version = context.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        own, theirs = socket.socketpair()
        own.setblocking(False)
        theirs.setblocking(False)
        for each in (own, theirs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BYTES)
        self.wire = own
        self.stream = TlsStream(theirs, server_context())

    def close(self) -> None:
        self.wire.close()
        self.stream.close()

    def hand_over(self, size: int = -1) -> bool:
        """Some of what is to be sent; whether there was anything."""
        data = self.outgoing.read(size)
        if data:
            self.wire.sendall(data)
        return bool(data)

    def take(self) -> bool:
        """What has come; whether anything had."""
        try:
            data = self.wire.recv(1 << 16)
        except BlockingIOError:
            return False
        self.incoming.write(data) if data else self.incoming.write_eof()
        return bool(data)

    def read(self) -> bytes:
        """What can be decrypted."""
        found = b""
        with suppress(ssl.SSLWantReadError):
            while data := self.tls.read(1 << 16):
                found += data
        return found

    def shake_hands(self, size: int = -1) -> None:
        for _ in range(10_000):
            with suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            self.hand_over(size)
            with suppress(BlockingIOError):
                self.stream.shake_hands()
            assert not self.stream.has_received or self.stream.is_open
            self.take()
            if self.stream.is_open and not self.outgoing.pending:
                return
        raise AssertionError("no handshake")


@pytest.fixture
def peer() -> Iterator[Peer]:
    with closing(Peer()) as made:
        yield made


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [1, 7, 1000, -1])
def test_hands_are_shaken_however_the_bytes_come(version: ssl.TLSVersion, size: int) -> None:
    with closing(Peer(version=version)) as peer:
        peer.shake_hands(size)
        assert peer.stream.is_open


@given(
    data=st.binary(min_size=1, max_size=60_000),
    rooms=st.lists(st.integers(1, 20_000), min_size=1),
    cuts=st.lists(st.integers(1, 20_000), min_size=1),
)
def test_what_the_client_sends_is_received_byte_for_byte(
    data: bytes, rooms: list[int], cuts: list[int]
) -> None:
    with closing(Peer()) as peer:
        peer.shake_hands()
        peer.tls.write(data)
        found, turn = b"", 0
        while len(found) < len(data):
            peer.hand_over(cuts[turn % len(cuts)])
            found += _received(peer.stream, rooms[turn % len(rooms)])
            # Nothing may be asked of the socket that has none.
            peer.stream.may_receive = 0
            while peer.stream.has_received:
                found += _received(peer.stream, rooms[turn % len(rooms)])
            peer.stream.may_receive = TURN_BYTES_MAX
            turn += 1
        assert found == data


def _received(stream: TlsStream, room: int) -> bytes:
    view = memoryview(bytearray(room))
    try:
        count = stream.recv_into(view)
    except BlockingIOError:
        assert not stream.has_received, "who asks again would ask for ever"
        return b""
    assert count, "that is the end"
    return bytes(view[:count])


@given(seed=st.integers(0, 1 << 32), size=st.integers(1, 1_000_000))
def test_what_is_sent_comes_byte_for_byte_through_a_socket_that_takes_little(
    seed: int, size: int
) -> None:
    rng = Random(seed)
    data = rng.randbytes(size)
    with closing(Peer()) as peer:
        peer.shake_hands()
        sent, found = 0, b""
        while len(found) < size:
            if sent < size:
                with suppress(BlockingIOError):
                    # Each time more or less is offered, as by a queue that has grown.
                    sent += peer.stream.send(data[sent : sent + rng.randint(1, 400_000)])
            else:
                peer.stream.flush()
            assert peer.stream.unsent_bytes <= RECORDS_AT_A_TIME * RECORD_BYTES_MAX
            for _ in range(rng.randint(0, 3)):
                peer.take()
            found += peer.read()
        assert found == data
        assert peer.stream.flush()
        assert not peer.stream.unsent_bytes


def test_what_has_come_is_taken_without_asking_the_socket_for_more(peer: Peer) -> None:
    peer.shake_hands()
    peer.stream.may_receive = 0
    peer.tls.write(bytes(1000))
    peer.hand_over()
    assert _received(peer.stream, 1000) == b""
    peer.stream.may_receive = TURN_BYTES_MAX
    assert len(_received(peer.stream, 600)) == 600
    assert peer.stream.has_received
    peer.stream.may_receive = 0
    assert len(_received(peer.stream, 600)) == 400


def test_a_file_is_sent_as_memory_is(peer: Peer, tmp_path: Path) -> None:
    peer.shake_hands()
    content = os.urandom(700_000)
    (tmp_path / "log").write_bytes(content)
    found, at = b"", 100
    with (tmp_path / "log").open("rb") as file:
        while len(found) < 500_000:
            if at < 500_100:
                with suppress(BlockingIOError):
                    at += peer.stream.send_file(file.fileno(), at, 500_100 - at)
            else:
                peer.stream.flush()
            peer.take()
            found += peer.read()
        assert peer.stream.send_file(file.fileno(), 700_000, 10) == 0
    assert found == content[100:500_100]


def test_several_parts_are_sent_as_one(peer: Peer) -> None:
    peer.shake_hands()
    assert peer.stream.sendmsg([b"ab", b"", b"cd"]) == 4
    peer.take()
    assert peer.read() == b"abcd"


@pytest.mark.parametrize("is_said", [True, False])
def test_the_end_is_the_end_said_or_not(peer: Peer, is_said: bool) -> None:
    peer.shake_hands()
    peer.tls.write(b"last")
    if is_said:
        with suppress(ssl.SSLWantReadError):
            peer.tls.unwrap()
    peer.hand_over()
    peer.wire.shutdown(socket.SHUT_WR)
    view = memoryview(bytearray(100))
    assert peer.stream.recv_into(view) == 4
    assert peer.stream.has_received == is_said, "nothing else tells of it"
    assert [peer.stream.recv_into(view) for _ in range(2)] == [0, 0]


def test_who_closes_says_so(peer: Peer) -> None:
    peer.shake_hands()
    peer.stream.close()
    while peer.take():
        pass
    assert peer.tls.read(10) == b""


def test_bytes_that_are_not_tls_are_an_error(peer: Peer) -> None:
    peer.wire.sendall(b"\0\0\0\x10GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER"):
        peer.stream.shake_hands()


def test_who_breaks_the_handshake_is_told_why(peer: Peer) -> None:
    peer.wire.sendall(b"\x16\x03\x01\0\x05hello")
    with pytest.raises(ssl.SSLError):
        peer.stream.shake_hands()
    assert peer.wire.recv(100)[:1] == b"\x15", "an alert"


def test_no_more_is_received_at_a_time_than_may_be(peer: Peer) -> None:
    peer.shake_hands()
    peer.tls.write(bytes(2000))
    peer.hand_over()
    view = memoryview(bytearray(4000))
    peer.stream.may_receive = 1500
    with pytest.raises(BlockingIOError):
        peer.stream.recv_into(view)
    assert peer.stream.may_receive == 0
    peer.stream.may_receive = 1000
    assert peer.stream.recv_into(view) == 2000


def test_what_came_before_a_broken_record_is_taken_first(peer: Peer) -> None:
    peer.shake_hands()
    while peer.take():
        pass
    peer.tls.write(b"whole")
    peer.hand_over()
    peer.wire.sendall(b"\x17\x03\x03\0\x20" + bytes(32))
    view = memoryview(bytearray(100))
    assert peer.stream.recv_into(view) == 5
    assert peer.stream.has_received
    with pytest.raises(ssl.SSLError):
        peer.stream.recv_into(view)
    assert peer.take(), "an alert"


def test_a_record_that_was_changed_on_its_way_is_an_error(peer: Peer) -> None:
    peer.shake_hands()
    peer.tls.write(b"a record")
    record = bytearray(peer.outgoing.read())
    record[-1] ^= 1
    peer.wire.sendall(record)
    with pytest.raises(ssl.SSLError):
        peer.stream.recv_into(memoryview(bytearray(100)))


def test_records_of_one_byte_are_received(peer: Peer) -> None:
    peer.shake_hands()
    found = b""
    for _ in range(20):
        for _ in range(250):
            peer.tls.write(b"x")
        while peer.hand_over(4000):
            found += _received(peer.stream, 20_000)
        while peer.stream.has_received:
            found += _received(peer.stream, 20_000)
    assert found == b"x" * 5000


def test_one_that_has_much_decrypted_for_nothing_is_cut_off(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a client does that asks for new keys, which Python's cannot."""
    peer.shake_hands()

    def yields_nothing(*_: object) -> int:
        raise ssl.SSLWantReadError

    monkeypatch.setattr("tidemark.broker.network.tls_stream._read_into", yields_nothing)
    peer.tls.write(bytes(60_000))

    def receive_all() -> None:
        while peer.hand_over(4000):
            with suppress(BlockingIOError):
                peer.stream.recv_into(memoryview(bytearray(16_384)))

    with pytest.raises(ssl.SSLError, match="hardly anything but what TLS says"):
        receive_all()
    assert peer.outgoing.pending > 20_000


def test_what_openssl_has_of_a_stream_is_gone_with_its_end() -> None:
    """And does not wait for the collector, with whoever has the stream."""
    peer = Peer()
    peer.shake_hands()
    encryption = weakref.ref(peer.stream._tls)
    peer.close()
    assert encryption() is None
    assert (peer.stream.unsent_bytes, peer.stream.flush()) == (0, True)
    peer.stream.close()
