"""TLS between brokers: who is taken for one, and what the others are told.

That everything else goes on as without is in the tests beside this one, which run with either.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import ssl
import struct
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.peers.answering import JOIN, Answering
from tests.broker.peers.brokers import (
    PLAIN,
    TLS,
    Broker,
    Wire,
    hello_of,
    introduce,
    open_one,
    open_pair,
    raw,
    read_to_end,
)
from tests.broker.peers.values import append, heartbeat, records_of
from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.config import BrokerSettings
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers import Peer, joining, peer_tls
from tidemark.broker.peers.tls_trouble import why_no_tls
from tidemark.partitions.state_machines.cluster_values import BrokerAddress
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.types import NodeId

TRUSTS_STRANGERS = attrs.evolve(TLS, peer_ssl_ca_location=CERTIFICATES / "stranger.pem")
"""It shows a certificate that the others trust, and trusts none of theirs."""


@pytest.fixture(autouse=True)
def speaks_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "settings", TLS)


def failed(broker: Broker) -> float:
    return broker.metrics.ended[PeerEnd.FAILED_TLS].value


async def handshake(broker: Broker, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection of whoever has this context, or `OSError`."""

    def connect() -> ssl.SSLSocket:
        with socket.create_connection(broker.address, timeout=10) as plain:
            encrypted = context.wrap_socket(plain)
        try:
            # With TLS 1.3 who has dialed hears of a refusal after its part of the handshake.
            encrypted.sendall(hello_of(3, broker))
            if not encrypted.recv(1):
                raise ConnectionResetError("it has hung up")
        except OSError:
            encrypted.close()
            raise
        return encrypted

    return await trio.to_thread.run_sync(connect)


def context_of(certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=CERTIFICATES / "ca.pem")
    context.check_hostname = False
    if certificate is not None:
        context.load_cert_chain(CERTIFICATES / certificate)
    return context


async def test_what_is_said_is_encrypted() -> None:
    """A proxy between the two sees it pass."""
    seen = bytearray()

    async def pass_on(source: trio.SocketStream, to: trio.SocketStream) -> None:
        async for data in source:
            seen.extend(data)
            await to.send_all(data)

    async with open_one(1) as one, open_one(2) as two, trio.open_nursery() as tasks:

        async def serve(stream: trio.SocketStream) -> None:
            async with await trio.open_tcp_stream(*two.address) as behind, stream:
                tasks.start_soon(pass_on, behind, stream)
                await pass_on(stream, behind)

        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        tasks.start_soon(trio.serve_listeners, serve, listeners)
        port = listeners[0].socket.getsockname()[1]
        there = BrokerAddress("127.0.0.1", port)
        two.network._services.own = replace(two.network.own, peer=there)  # it says so itself
        one.network.set_peers({two.node: Peer(there)})
        two.know(one)
        await one.wait_up(two)
        await two.wait_up(one)
        one.send(two, append(b"nobody else is to read this " * 100))
        await two.wait_messages(1)
        assert records_of(two.messages[0]).startswith(b"nobody")
        assert len(seen) > 3000
        assert b"nobody" not in seen
        tasks.cancel_scope.cancel()


async def test_much_goes_both_ways_at_once() -> None:
    """More than sockets take, and than is encrypted or received at once."""
    async with open_pair() as (one, two):
        pieces = [os.urandom(3_000_000) for _ in range(8)]
        for number, piece in enumerate(pieces):
            one.send(two, append(piece, partition=number))
            two.send(one, append(piece, partition=number))
        for each in (one, two):
            await each.wait_messages(len(pieces))
            assert [records_of(message) for message in each.messages] == pieces
        assert len(one.told) == len(two.told) == 1


async def test_the_rest_of_what_has_come_is_taken_though_the_socket_is_silent() -> None:
    """A frame of zeros is none of the protocol, which shows once all of it has been taken."""
    frame = struct.pack(">i", 30_000) + bytes(30_000)
    async with open_one(1) as one, await raw(one) as stranger:
        await stranger.send_all(hello_of(3, one))
        assert await stranger.receive_some()
        incoming = one.network._links[NodeId(3)]._incoming
        assert incoming is not None
        one.turn.run(incoming.resume)
        await stranger.send_all(frame[:15_000])  # nearly all that is received at first
        await trio.sleep(0.1)
        await stranger.send_all(frame[15_000:])
        await wait_until(lambda: one.metrics.ended[PeerEnd.BAD_INPUT].value == 1)


async def test_what_the_socket_does_not_take_at_once_is_sent_later() -> None:
    """It is encrypted, and no more in the queue."""
    async with open_pair() as (one, two):
        incoming = two.network._links[one.node]._incoming
        assert incoming is not None
        incoming.pause()
        sent = 0
        while not one.network.unsent_bytes(two.node):
            one.send(two, append(bytes(10_000), partition=sent))
            sent += 1
        two.turn.run(incoming.resume)
        await two.wait_messages(sent)
        assert len(one.told) == len(two.told) == 1


async def test_who_begins_without_it_is_not_heard() -> None:
    async with open_one(1) as one:
        async with await trio.open_tcp_stream(*one.address) as stranger:
            await stranger.send_all(hello_of(3, one))
            with trio.fail_after(20):
                await read_to_end(stranger)
        assert failed(one) == 1
        assert NodeId(3) not in one.network._links


@pytest.mark.parametrize(
    ("certificate", "told"),
    [(None, "shows no certificate"), ("impostor.pem", "its certificate is not trusted")],
)
async def test_who_has_no_certificate_of_the_ca_is_no_broker(
    certificate: str | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_pair() as (one, two):
        # A client's is by the same CA as the brokers': what counts is who has signed it.
        with await handshake(one, context_of("client.pem")):
            pass
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await handshake(one, context_of(certificate))
        await wait_until(lambda: failed(one) == 1)
        assert told in caplog.text
        one.send(two, heartbeat())
        await two.wait_messages(1)


async def test_one_that_is_not_trusted_is_not_up_and_both_say_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2, speaks=TRUSTS_STRANGERS) as two:
        introduce(one, two)
        await wait_until(lambda: failed(one) >= 2 and failed(two) >= 2)
        assert "it does not trust this broker's certificate" in one.network.trouble_with(two.node)
        assert "its certificate is not trusted" in two.network.trouble_with(one.node)
        assert "peer.ssl.ca.location" in two.network.trouble_with(one.node)
        assert one.told == two.told == []


async def test_one_that_speaks_without_is_not_up_and_both_say_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2, speaks=PLAIN) as two:
        introduce(one, two)
        await wait_until(lambda: failed(one) >= 2)
        await wait_until(lambda: two.metrics.ended[PeerEnd.BAD_INPUT].value >= 2)
        assert "peer.ssl.certificate.location" in one.network.trouble_with(two.node)
        assert "it may not speak TLS" in caplog.text
        assert "it speaks TLS" in caplog.text
        assert one.told == two.told == []


async def test_one_that_is_asked_to_let_another_in_has_to_be_trusted() -> None:
    async with open_one(1) as one:
        tls = peer_tls.peer_tls(TRUSTS_STRANGERS)
        with pytest.raises(RequestError, match="its certificate is not trusted") as refused:
            await joining.ask_to_join(one.network.address, JOIN, tls)
        assert refused.value.code is ErrorCode.NETWORK_EXCEPTION
        with pytest.raises(RequestError, match="it may speak TLS"):
            await joining.ask_to_join(one.network.address, JOIN)


async def test_a_certificate_that_was_renewed_is_shown_to_who_comes_then(tmp_path: Path) -> None:
    shown = tmp_path / "own.pem"
    shutil.copy(CERTIFICATES / "localhost.pem", shown)
    speaks = attrs.evolve(TLS, peer_ssl_certificate_location=shown)
    async with open_one(1, speaks=speaks) as one:

        async def name_shown() -> str:
            with await handshake(one, context_of("client.pem")) as connected:
                return str(connected.getpeercert())

        assert "localhost" in await name_shown()
        shutil.copy(CERTIFICATES / "client.pem", shown)
        with trio.fail_after(20):
            while "localhost" in await name_shown():  # noqa: ASYNC110 # a file has no event
                await trio.sleep(0.1)


async def test_where_it_is_not_required_each_is_spoken_to_as_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So a cluster changes one broker after the other, and nobody is ever alone."""
    either = attrs.evolve(TLS, peer_ssl_required=False)
    async with (
        open_one(1, speaks=PLAIN) as old,
        open_one(2, speaks=either) as two,
        open_one(3, speaks=either) as three,
        open_one(4, speaks=TLS) as new,
    ):
        introduce(old, two, three)
        await old.wait_up(two, three)
        await two.wait_up(old, three)
        await three.wait_up(old, two)
        warned = {each.message for each in caplog.records if "without TLS" in each.message}
        assert warned == {"broker 1 is spoken to without TLS, in which it failed"}
        introduce(two, three, new)
        await new.wait_up(two, three)
        await two.wait_up(three, new)
        await three.wait_up(two, new)
        for each, other in permutations((two, three, new), 2):
            outgoing = each.network._links[other.node].outgoing
            assert outgoing is not None
            assert not outgoing.is_plain


async def test_one_may_be_let_in_by_who_speaks_without_it() -> None:
    either = peer_tls.peer_tls(attrs.evolve(TLS, peer_ssl_required=False))
    for speaks in (PLAIN, TLS):
        answering = Answering()
        async with open_one(1, handlers=answering.handlers, speaks=speaks) as one:
            await joining.ask_to_join(one.network.address, JOIN, either)
            assert answering.asked == [(None, JOIN)]


async def test_who_says_nothing_is_hung_up_on_where_it_may_speak_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.strangers.HELLO_SECONDS", 0.02)
    async with open_one(1, speaks=attrs.evolve(TLS, peer_ssl_required=False)) as one:
        with socket.create_connection(one.address) as silent:
            assert await trio.to_thread.run_sync(silent.recv, 1) == b""
        with socket.create_connection(one.address):
            pass
        await wait_until(lambda: one.metrics.ended[PeerEnd.BY_PEER].value == 1)
        assert one.metrics.ended[PeerEnd.NO_HELLO].value == 1
        assert not one.network.strangers._waited_for


async def test_a_link_without_it_is_mended_as_soon_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS tried first, and no wait in between."""
    monkeypatch.setattr("tidemark.broker.peers.dialing._FIRST_SECONDS", 1000.0)
    either = attrs.evolve(TLS, peer_ssl_required=False)
    async with open_one(1, speaks=PLAIN) as old, open_one(2, speaks=either) as two:
        introduce(old, two)
        await two.wait_up(old)
        await old.wait_up(two)
        assert two.metrics.attempts.value == 2


async def test_where_nothing_helps_it_is_told_why_there_is_no_tls() -> None:
    either = attrs.evolve(TRUSTS_STRANGERS, peer_ssl_required=False)
    async with open_one(1) as one, open_one(2, speaks=either) as two:
        introduce(one, two)
        await wait_until(lambda: two.metrics.attempts.value >= 4)
        assert "its certificate is not trusted" in two.network.trouble_with(one.node)
        with pytest.raises(RequestError, match="its certificate is not trusted"):
            await joining.ask_to_join(one.network.address, JOIN, peer_tls.peer_tls(either))


async def test_one_that_cannot_be_watched_is_hung_up_on_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with open_one(1, speaks=attrs.evolve(TLS, peer_ssl_required=False)) as one:
        with monkeypatch.context() as patched:
            patched.setattr("tidemark.broker.peers.strangers._begins_tls", no_room)
            with socket.create_connection(one.address):
                await wait_until(lambda: one.metrics.ended[PeerEnd.ERROR].value == 1)
        assert not one.network.strangers._waited_for


@pytest.mark.parametrize("speaks", [PLAIN, TLS, attrs.evolve(TLS, peer_ssl_required=False)])
async def test_a_broker_gets_in_beside_any_number_of_strangers(speaks: BrokerSettings) -> None:
    async with (
        open_one(1, speaks=speaks) as one,
        open_one(2, speaks=speaks) as two,
        AsyncExitStack() as strangers,
    ):
        for _ in range(100):
            strangers.enter_context(socket.create_connection(one.address))
        await wait_until(lambda: one.metrics.ended[PeerEnd.TOO_MANY].value >= 36)
        introduce(one, two)
        with trio.fail_after(2):
            await one.wait_up(two)
            await two.wait_up(one)


async def test_who_only_looks_whether_somebody_listens_is_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one:
        with socket.create_connection(one.address):
            pass
        await wait_until(lambda: failed(one) == 1)
    assert not caplog.records


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (10, "certificate has expired", "or set the clocks right"),
        (26, "unsuitable certificate purpose", "serverAuth and clientAuth"),
        (20, "unable to get local issuer certificate", "peer.ssl.ca.location says who signs"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_told(code: int, message: str, told: str) -> None:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    assert told in why_no_tls(error)


@pytest.mark.parametrize(
    ("alert", "told"),
    [
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "renew peer.ssl.certificate.location, or"),
        ("SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "serverAuth and clientAuth"),
        ("TLSV1_ALERT_UNKNOWN_CA", "its peer.ssl.ca.location"),
        ("UNEXPECTED_MESSAGE", "unexpected message"),
    ],
)
def test_what_the_other_side_refuses_is_told(alert: str, told: str) -> None:
    error = ssl.SSLError(1, alert)
    error.reason = alert
    assert told in why_no_tls(error)


def test_a_certificate_that_no_broker_would_take_is_told_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert peer_tls.peer_tls(TLS) is not None
    assert not caplog.records
    impostor = attrs.evolve(TLS, peer_ssl_certificate_location=CERTIFICATES / "impostor.pem")
    assert peer_tls.peer_tls(impostor) is not None
    assert "will not take this one: unable to get local issuer certificate" in caplog.text
    assert "impostor.pem: other brokers" in caplog.text


async def test_one_that_hangs_up_in_the_handshake_is_tried_again() -> None:
    async with open_one(1) as one, open_one(2) as two, await raw(one):
        with socket.create_connection(one.address) as gone:
            gone.sendall(b"\x16\x03\x01")
        introduce(one, two)
        await one.wait_up(two)
        await two.wait_up(one)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"peer_ssl_certificate_location": Path("/nowhere.pem")}, "No such file"),
        (
            {"peer_ssl_certificate_location": Path(__file__)},
            "it has to have a certificate",
        ),
        (
            {"peer_ssl_key_location": CERTIFICATES / "client.pem"},
            "the key is not the certificate's",
        ),
        ({"peer_ssl_ca_location": Path("/nowhere.pem")}, "peer.ssl.ca.location"),
    ],
)
def test_what_cannot_be_shown_is_told_before_anybody_is_served(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        peer_tls.peer_tls(attrs.evolve(TLS, **settings))


def test_without_a_certificate_there_is_none() -> None:
    assert peer_tls.peer_tls(BrokerSettings()) is None
