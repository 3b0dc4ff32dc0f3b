"""Who a client is by its certificate, whatever it shows, and who is nobody by it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from tests.broker.network.tls import CA as CA_OF_BROKERS
from tests.broker.network.tls import SECONDS_MAX, answers, metric, request, serving, until
from tests.broker.network.user_certificates import CA, NAMES, file_of
from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.tls_connection import TlsConnection
from tidemark.client import ClientSettings, Sasl, Tls
from tidemark.client.blocking import open_client
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.testing import BlockingCluster

REQUIRED: Final = {"ssl_client_auth": "required", "ssl_ca_location": CA}
REQUESTED: Final = {**REQUIRED, "ssl_client_auth": "requested"}


def context_of(name: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=CA_OF_BROKERS)
    if name is not None:
        context.load_cert_chain(file_of(name))
    return context


@contextmanager
def connected(
    port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as encrypted,
    ):
        yield encrypted


def connection_of(cluster: BlockingCluster, client: ssl.SSLSocket) -> TlsConnection:
    """The broker's, once it has answered a request."""
    client.sendall(request(1))
    assert answers(client, 1) == [1]
    broker = cluster._cluster._hosted[1].running
    assert broker is not None
    open_now = broker.connections._open
    (found,) = (
        each
        for each in cluster._run_sync(lambda: list(open_now))
        if isinstance(each, TlsConnection)
        and each._stream._socket.getpeername() == client.getsockname()
    )
    return found


def user_of(cluster: BlockingCluster, port: int, name: str | None) -> str | None:
    with connected(port, context_of(name)) as client:
        return connection_of(cluster, client).session.user


def is_cut_off(port: int, context: ssl.SSLContext) -> bool:
    """Before it is answered anything."""
    with suppress(ConnectionError, ssl.SSLError), connected(port, context) as client:
        client.sendall(request(1))
        return client.recv(1) == b""
    return True


@pytest.fixture(scope="module")
def requiring() -> Iterator[tuple[BlockingCluster, int]]:
    with serving(**REQUIRED) as served:
        yield served


@pytest.mark.parametrize("name", [name for name in NAMES if NAMES[name]])
def test_a_client_is_who_its_certificate_says(
    requiring: tuple[BlockingCluster, int], name: str
) -> None:
    assert user_of(*requiring, name) == NAMES[name]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_resumes_a_session_is_who_it_was(
    requiring: tuple[BlockingCluster, int], version: ssl.TLSVersion
) -> None:
    cluster, port = requiring
    context = context_of("alice")
    context.maximum_version = version
    with connected(port, context) as client:
        assert connection_of(cluster, client).session.user == NAMES["alice"]
        session = client.session
    assert session is not None
    with connected(port, context, session) as client:
        assert client.session_reused
        assert connection_of(cluster, client).session.user == NAMES["alice"]


def test_who_shows_none_where_it_may_is_nobody() -> None:
    with serving(**REQUESTED) as served:
        assert user_of(*served, None) is None
        assert user_of(*served, "bob") == NAMES["bob"]


def test_where_none_is_asked_for_nobody_is_anybody() -> None:
    with serving() as served:
        assert user_of(*served, "alice") is None


def test_one_of_another_ca_lets_nobody_in_though_none_is_required() -> None:
    with serving(**REQUESTED) as (cluster, port):
        context = context_of(None)
        context.load_cert_chain(CERTIFICATES / "client.pem")
        assert is_cut_off(port, context)
        until(cluster, BadInput.FAILED_TLS, 1)


def test_a_certificate_without_a_name_lets_nobody_in(
    requiring: tuple[BlockingCluster, int], caplog: pytest.LogCaptureFixture
) -> None:
    cluster, port = requiring
    before = int(metric(cluster, BadInput.FAILED_AUTHENTICATION))
    assert is_cut_off(port, context_of("nameless"))
    until(cluster, BadInput.FAILED_AUTHENTICATION, before + 1)
    assert "ssl.principal.mapping.rules make no user of '', as its certificate" in caplog.text


RULES: Final = r"RULE:^CN=([^,\\]+),OU=Data,O=Acme,C=DE$/$1/U, RULE:^CN=admin$//, RULE:^$/mesh/"


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("alice", "ALICE"),
        ("nameless", "mesh"),
        ("of-two", "ALICE+CN=MALLORY"),
        ("in-one", None),
        ("odd", None),
        ("admin", None),
    ],
)
def test_rules_say_who_a_client_is_and_who_has_none_is_not_let_in(
    name: str, user: str | None
) -> None:
    with serving(**REQUIRED, ssl_principal_mapping_rules=RULES) as (cluster, port):
        if user is not None:
            assert user_of(cluster, port, name) == user
        else:
            assert is_cut_off(port, context_of(name))
            until(cluster, BadInput.FAILED_AUTHENTICATION, 1)


def test_with_sasl_a_certificate_makes_nobody_a_user() -> None:
    sasl = {"listeners": "SASL_SSL://localhost:0", "users": "ada:tides"}
    with serving(**REQUIRED, **sasl) as (cluster, port):
        with connected(port, context_of("alice")) as client:
            session = connection_of(cluster, client).session
            assert session.user is None
            assert not session.is_admitted
            client.sendall(encode_request(MetadataRequest(topics=[]), 1, 2, "c"))
            with suppress(ConnectionError):
                assert client.recv(1) == b""
        settings = ClientSettings(
            tls=Tls(ca_file=CA_OF_BROKERS, certificate_file=file_of("alice")),
            sasl=Sasl("SCRAM-SHA-256", "ada", "tides"),
        )
        with open_client(f"localhost:{port}", settings=settings) as other:
            other.run(other.admin.describe_cluster)
            broker = cluster._cluster._hosted[1].running
            assert broker is not None
            connections = broker.connections
            open_now = cluster._run_sync(lambda: list(connections._open))
            assert {each.session.user for each in open_now} == {"ada"}


def test_a_certificate_that_cannot_be_read_lets_nobody_in(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that OpenSSL can read all the same."""
    limit = "tidemark.broker.network.distinguished_names.SUBJECT_BYTES_MAX"
    with serving(**REQUIRED) as (cluster, port):
        monkeypatch.setattr(limit, 50)
        assert is_cut_off(port, context_of("alice"))
        until(cluster, BadInput.FAILED_AUTHENTICATION, 1)
    assert "its certificate cannot be read: its subject has 61 bytes" in caplog.text
