"""A listener with TLS: whom it serves, whom it tells what is wrong, and what it shows."""

from __future__ import annotations

import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.broker.network.tls import (
    CA,
    CERTIFICATE,
    SECONDS_MAX,
    Answers,
    answers,
    metric,
    request,
    serving,
    until,
)
from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.config import BrokerSettings, load_settings
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.broker.network import connections
from tidemark.broker.network.listener_tls import listener_tls
from tidemark.broker.network.tls_connection import FailedTls
from tidemark.client import ClientSettings, Tls
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import ConfigError, TidemarkError

ENCRYPTED: Final = str(CERTIFICATES / "encrypted.pem")
TRUSTING: Final = Tls(ca_file=CA)
LITTLE: Final = {"socket_send_buffer_bytes": "4096"}
"""The kernel takes little of what is to be sent."""


@contextmanager
def connected(
    port: int, *, receives_bytes: int | None = None, version: ssl.TLSVersion | None = None
) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=CA)
    if version is not None:
        context.maximum_version = version
    with socket.socket() as plain:
        if receives_bytes is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives_bytes)
        plain.settimeout(SECONDS_MAX)
        plain.connect(("127.0.0.1", port))
        with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
            yield encrypted


def brokers(port: int, tls: Tls) -> int:
    with open_client(f"localhost:{port}", settings=ClientSettings(tls=tls)) as client:
        return len(client.run(client.admin.describe_cluster).brokers)


def test_requests_that_come_in_one_record_are_all_answered() -> None:
    with serving() as (_, port), connected(port) as client:
        client.sendall(b"".join(request(number) for number in range(200)))
        assert answers(client, 200) == list(range(200))


def test_the_rest_of_a_record_is_taken_though_the_socket_is_silent() -> None:
    whole = request(3, client_id="c" * 30_000)
    with serving() as (_, port), connected(port) as client:
        client.sendall(whole[:15_000])  # nearly all that is received at first
        time.sleep(0.1)
        client.sendall(whole[15_000:])
        assert answers(client, 1) == [3]


def test_a_request_that_comes_byte_by_byte_is_answered() -> None:
    with serving() as (_, port), connected(port) as client:
        for byte in request(7):
            client.sendall(bytes([byte]))
        assert answers(client, 1) == [7]


def test_an_answer_that_is_read_late_comes_whole() -> None:
    with serving(**LITTLE) as (_, port), connected(port, receives_bytes=4096) as client:
        client.sendall(b"".join(request(number) for number in range(1000)))
        time.sleep(0.3)
        assert answers(client, 1000) == list(range(1000))


def test_a_stop_sends_what_is_encrypted() -> None:
    with ExitStack() as stopping, ThreadPoolExecutor() as threads:
        _, port = stopping.enter_context(serving(**LITTLE))
        with connected(port, receives_bytes=4096) as client:
            client.sendall(b"".join(request(number) for number in range(40)))
            coming = Answers(client)
            answered = coming.take(1)
            stopped = threads.submit(stopping.close)
            time.sleep(0.3)  # all that is left is in one record
            assert not stopped.done(), "it waits for who reads"
            answered += coming.take(39)
            assert client.recv(1) == b""
        stopped.result(SECONDS_MAX)
    assert answered == list(range(40))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(version: ssl.TLSVersion) -> None:
    with serving() as (_, port), connected(port, version=version) as client:
        assert client.version() == version.name.replace("_", ".")
        client.sendall(request(1))
        assert answers(client, 1) == [1]


def test_who_does_not_speak_it_is_counted_and_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as (cluster, port):
        for said in (request(1), b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 100):
            with socket.create_connection(("localhost", port), timeout=SECONDS_MAX) as client:
                client.sendall(said)
                with suppress(ConnectionResetError):
                    while client.recv(1000):
                        pass
        until(cluster, BadInput.FAILED_TLS, 3)
        assert brokers(port, TRUSTING) == 1, "others are served"
    assert "it does not speak TLS (security.protocol=SSL or SASL_SSL)" in caplog.text


def test_who_connects_and_goes_away_is_no_bad_input() -> None:
    with serving() as (cluster, port):
        before = metric(cluster, ConnectionEnd.BY_CLIENT)
        socket.create_connection(("localhost", port)).close()
        until(cluster, ConnectionEnd.BY_CLIENT, int(before) + 1)
        assert metric(cluster, BadInput.FAILED_TLS) == 0


def test_who_never_ends_its_handshake_has_to_go_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "ADMISSION_SECONDS", 1.0)
    with serving() as (cluster, port), connected(port) as client:
        with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as stranger:
            stranger.sendall(b"\x16\x03\x01")  # the beginning of a Hello
            assert stranger.recv(1) == b""
        until(cluster, ConnectionEnd.SLOW, 1)
        client.sendall(request(4))
        assert answers(client, 1) == [4]


def test_who_does_not_trust_it_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    with serving() as (cluster, port):
        # Who hangs up at once may be gone before what it has said is read.
        while not metric(cluster, BadInput.FAILED_TLS):
            assert time.monotonic() < deadline
            with pytest.raises(ConnectionError):
                brokers(port, Tls(ca_file=str(CERTIFICATES / "stranger.pem")))
    assert "does not trust this broker's certificate" in caplog.text


def test_clients_show_a_certificate_where_one_is_required() -> None:
    with serving(ssl_client_auth="required", ssl_ca_location=CA) as (cluster, port):
        mine = Tls(ca_file=CA, certificate_file=str(CERTIFICATES / "client.pem"))
        assert brokers(port, mine) == 1
        with pytest.raises((ConnectionError, TidemarkError)):
            brokers(port, TRUSTING)
        until(cluster, BadInput.FAILED_TLS, 1)


def test_plain_and_encrypted_listeners_stand_side_by_side() -> None:
    with socket.create_server(("localhost", 0)) as free:
        plain = free.getsockname()[1]
    with serving(listeners=f"SSL://localhost:0,PLAINTEXT://localhost:{plain}") as (_, port):
        assert brokers(port, TRUSTING) == 1
        with open_client(f"localhost:{plain}") as client:
            assert len(client.run(client.admin.describe_cluster).brokers) == 1


def test_a_certificate_that_was_renewed_is_shown_to_who_comes_then(tmp_path: Path) -> None:
    mine = tmp_path / "mine.pem"
    shutil.copy(CERTIFICATE, mine)
    with serving(ssl_certificate_location=str(mine)) as (_, port), connected(port) as before:
        shown = before.getpeercert(binary_form=True)
        mine.write_bytes(b"half of a file")
        time.sleep(1.5)
        with connected(port) as meanwhile:
            assert meanwhile.getpeercert(binary_form=True) == shown, "that is no certificate"
        # Of the same CA, and for another name.
        shutil.copy(CERTIFICATES / "client.pem", mine)
        deadline = time.monotonic() + SECONDS_MAX
        context = ssl.create_default_context(cafile=CA)
        while True:
            with socket.create_connection(("localhost", port)) as plain:
                context.check_hostname = False
                with context.wrap_socket(plain, server_hostname="localhost") as after:
                    if after.getpeercert(binary_form=True) != shown:
                        break
            assert time.monotonic() < deadline, "the old one is shown"
            time.sleep(0.1)
        before.sendall(request(1))
        assert answers(before, 1) == [1], "who came before is served on"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ssl.SSLError(1, "of our own"), "no TLS: of our own"),
        (ssl.SSLError("no number"), "no TLS: no number"),
    ],
)
def test_an_error_that_openssl_has_not_raised_has_words_too(error: ssl.SSLError, told: str) -> None:
    assert str(FailedTls(error)) == told


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"ssl.certificate.location": "/nowhere.pem"}, "No such file"),
        (
            {"ssl.certificate.location": __file__},
            "it has to have a certificate",
        ),
        (
            {"ssl.certificate.location": CA},
            "name a key .* with ssl.key.location",
        ),
        ({"ssl.certificate.location": ENCRYPTED}, "ssl.key.password is missing"),
        (
            {"ssl.certificate.location": ENCRYPTED, "ssl.key.password": "ebbs"},
            "ssl.key.password is wrong",
        ),
        ({"ssl.key.location": "/nowhere.pem"}, "No such file"),
        (
            {"ssl.key.location": str(CERTIFICATES / "client.pem")},
            "the key is not the certificate's",
        ),
        ({"ssl.client.auth": "required", "ssl.ca.location": "/nowhere.pem"}, "ssl.ca.location"),
    ],
)
def test_what_cannot_be_shown_is_told_before_anybody_is_served(
    settings: dict[str, str], told: str
) -> None:
    given = {
        "listeners": "SSL://localhost:0",
        "ssl.certificate.location": str(CERTIFICATE),
        **settings,
    }
    with pytest.raises(ConfigError, match=told):
        listener_tls(_loaded(given))


def test_a_key_that_its_password_opens_is_taken() -> None:
    given = {
        "listeners": "SSL://localhost:0",
        "ssl.certificate.location": ENCRYPTED,
        "ssl.key.password": "tides",
    }
    assert listener_tls(_loaded(given)).value.verify_mode is ssl.CERT_NONE


def _loaded(options: dict[str, str]) -> BrokerSettings:
    return load_settings(options=options, environment={}).settings
