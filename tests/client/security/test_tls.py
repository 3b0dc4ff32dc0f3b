"""The client over TLS, trio's and the blocking one, against a broker behind a proxy."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Final

import pytest
import trio

from tests.client.security.tls_proxy import CERTIFICATES, TlsProxy, open_tls_proxy
from tidemark.client import ClientSettings, Sasl, Tls, TopicPartition, UntrustedBroker, open_client
from tidemark.client.blocking import KeptConnections, connect, read_batches
from tidemark.client.security.tls import context_of
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidemark.testing import open_cluster

CA: Final = str(CERTIFICATES / "ca.pem")
TRUSTING: Final = ClientSettings(tls=Tls(ca_file=CA))
BEHIND: Final = "127.0.0.2"
"""Where the broker listens itself, with the proxy's port."""
RECORDS: Final = 300
RECORD_BYTES: Final = 10_000


@asynccontextmanager
async def behind_tls(
    *, asks_for: Path | None = None, users: str | None = None
) -> AsyncIterator[TlsProxy]:
    """A broker that tells its clients to come through a proxy."""
    protocol = "PLAINTEXT" if users is None else "SASL_PLAINTEXT"
    async with open_tls_proxy(asks_for=asks_for) as proxy:
        settings = {
            "listeners": f"{protocol}://{BEHIND}:{proxy.port}",
            "advertised.listeners": f"{protocol}://localhost:{proxy.port}",
            **({} if users is None else {"users": users}),
        }
        proxy.target = (BEHIND, proxy.port)
        async with open_cluster(settings=settings):
            yield proxy


async def test_much_is_written_and_read_by_both_clients() -> None:
    async with behind_tls() as proxy, open_client(proxy.bootstrap, settings=TRUSTING) as client:
        await client.admin.create_topic("secrets", partitions=1)
        async with client.producer() as producer:
            for number in range(RECORDS):
                await producer.send("secrets", b"%d" % number * 2 + b"x" * RECORD_BYTES)
        async with client.consumer("secrets", until_end=True) as consumer:
            assert len([record async for record in consumer]) == RECORDS

        def read() -> int:
            kept = KeptConnections()
            counts = []
            for _ in range(2):
                found = read_batches(
                    proxy.bootstrap,
                    TopicPartition("secrets", 0),
                    0,
                    RECORDS,
                    settings=TRUSTING,
                    connections=kept,
                )
                counts.append(sum(each.next_offset - each.fetch_offset for each in found))
            assert kept.idle, "an encrypted connection is kept, too"
            kept.close()
            assert counts[0] == counts[1]
            return counts[0]

        assert await trio.to_thread.run_sync(read) == RECORDS


async def test_a_broker_that_nobody_vouches_for_is_not_talked_to() -> None:
    stranger = Tls(ca_file=str(CERTIFICATES / "stranger.pem"))
    async with behind_tls() as proxy:
        settings = ClientSettings(tls=stranger)
        with pytest.raises(UntrustedBroker, match=r"not trusted.*ssl\.ca\.location"):
            async with open_client(proxy.bootstrap, settings=settings):
                pass
        # Its certificate is for another name.
        with pytest.raises(UntrustedBroker, match=r"127\.0\.0\.1.*by a name that it has"):
            async with open_client(f"127.0.0.1:{proxy.port}", settings=TRUSTING):
                pass

        def ask() -> None:
            with connect("localhost", proxy.port, settings):
                pass

        with pytest.raises(UntrustedBroker):
            await trio.to_thread.run_sync(ask)
        careless = ClientSettings(tls=Tls(checks_certificate=False))
        async with open_client(proxy.bootstrap, settings=careless) as client:
            assert len((await client.admin.describe_cluster()).brokers) == 1


async def test_who_has_to_show_a_certificate_shows_it() -> None:
    ca = CERTIFICATES / "ca.pem"
    mine = Tls(ca_file=CA, certificate_file=str(CERTIFICATES / "client.pem"))
    async with behind_tls(asks_for=ca) as proxy:
        async with open_client(proxy.bootstrap, settings=ClientSettings(tls=mine)) as client:
            assert len((await client.admin.describe_cluster()).brokers) == 1
        assert set(proxy.seen) == {"client"}
        with pytest.raises(ConnectionError):
            async with open_client(proxy.bootstrap, settings=TRUSTING):
                pass


@contextmanager
def refusing(asks_for: Path) -> Iterator[int]:
    """The port of a listener that takes only certificates of this CA, and says so by an alert."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=asks_for)
    context.load_cert_chain(CERTIFICATES / "localhost.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    def refuse() -> None:
        came, _ = listener.accept()
        with came, came.dup() as kept:
            with suppress(ssl.SSLError):
                context.wrap_socket(came, server_side=True)
            # Closed before the client has read, it would lose the alert.
            with suppress(ConnectionError):
                while kept.recv(1024):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        refuser = Thread(target=refuse)
        refuser.start()
        yield listener.getsockname()[1]
        refuser.join()


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (None, r"asks for a certificate.*\(ssl\.certificate\.location, ssl\.key\.location\)"),
        ("client.pem", r"does not take this client's certificate \(ssl\.certificate\.location\)"),
    ],
)
async def test_what_a_broker_says_of_a_certificate_is_told(shown: str | None, told: str) -> None:
    mine = None if shown is None else str(CERTIFICATES / shown)
    settings = ClientSettings(tls=Tls(ca_file=CA, certificate_file=mine))
    strangers = CERTIFICATES / "stranger.pem"
    with refusing(strangers) as port, pytest.raises(ConnectionError, match=told):
        async with open_client(f"localhost:{port}", settings=settings):
            pass
    with (
        refusing(strangers) as port,
        pytest.raises(ConnectionError, match=told),
        connect("localhost", port, settings),
    ):
        pass


async def test_who_does_not_speak_tls_is_told_on_either_side() -> None:
    quick = ClientSettings(connect_timeout_seconds=5.0)
    async with behind_tls() as proxy:
        with pytest.raises(ConnectionError, match=r"speaks TLS|closed the connection"):
            async with open_client(proxy.bootstrap, settings=quick):
                pass
        plain = f"{BEHIND}:{proxy.port}"
        with pytest.raises(ConnectionError, match="listener"):
            async with open_client(plain, settings=TRUSTING):
                pass


async def test_a_password_goes_through_it() -> None:
    async with behind_tls(users="ada:secret") as proxy:
        known = ClientSettings(tls=Tls(ca_file=CA), sasl=Sasl("PLAIN", "ada", "secret"))

        def ask(settings: ClientSettings) -> int:
            with connect("localhost", proxy.port, settings) as connection:
                answer = connection.request(MetadataRequest(topics=()), MetadataResponse)
                return len(answer.brokers)

        assert await trio.to_thread.run_sync(ask, known) == 1
        wrong = ClientSettings(tls=Tls(ca_file=CA), sasl=Sasl("SCRAM-SHA-256", "ada", "guess"))
        with pytest.raises(RequestError, match="localhost") as caught:
            await trio.to_thread.run_sync(ask, wrong)
        assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"certificate_file": "ca.pem"}, "its key, in PEM: name .* with ssl.key.location"),
        (
            {"certificate_file": "ca.pem", "key_file": "ca.pem"},
            "its key, in PEM: name .* with ssl.key.location",
        ),
        ({"certificate_file": "encrypted.pem"}, "encrypted, and ssl.key.password is missing"),
        (
            {"certificate_file": "encrypted.pem", "key_password": "no"},
            "encrypted, and ssl.key.password is wrong",
        ),
        (
            {"certificate_file": "ca.pem", "key_file": "client.pem"},
            "key is not the certificate's",
        ),
        ({"certificate_file": "make.sh"}, "it has to have a certificate and its key, in PEM"),
        ({"certificate_file": "nosuch.pem"}, "No such file"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_in_words(files: dict[str, str], why: str) -> None:
    paths = {
        name: str(CERTIFICATES / value) if name.endswith("_file") else value
        for name, value in files.items()
    }
    with pytest.raises(ConfigError, match=why):
        context_of(Tls(**paths))  # type: ignore[arg-type]  # all of these are text
