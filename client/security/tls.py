"""TLS to brokers: whom to trust, and a socket that behaves as one without TLS does."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from socket import socket
from typing import TYPE_CHECKING, Final

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.openssl import load_certificate, words_of
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


_OF_ANOTHER_NAME: Final = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH."""


class UntrustedBroker(ConnectionError):
    """It is not who it should be, or does not take this client for who it is. Final: trying again
    changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Files are PEM. Without a CA of one's own, those that the system trusts are trusted."""

    ca_file: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    """The same, given as text."""
    certificate_file: str | None = None
    """What this client shows of itself, with the chain up to a CA that the brokers know."""
    key_file: str | None = None
    """Its key, if it is not in `certificate_file`, too."""
    key_password: str | None = field(default=None, repr=False)
    checks_name: bool = True
    """Whether the certificate has to be for the host that was asked for."""
    checks_certificate: bool = True
    """Without it, anybody can be the broker: for a first try alone."""


@lru_cache(maxsize=8)
def context_of(tls: Tls) -> ssl.SSLContext:
    """Read the files, once for as many connections as there will be. Raises `ConfigError`."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca_pem)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the CA {tls.ca_file or 'certificates'}: {words_of(error)}") from error
    context.check_hostname = tls.checks_name and tls.checks_certificate
    if not tls.checks_certificate:
        context.verify_mode = ssl.CERT_NONE
    context.sslsocket_class = TlsSocket
    if tls.certificate_file is not None:
        files = " and ".join(filter(None, (tls.certificate_file, tls.key_file)))
        load_certificate(
            context,
            tls.certificate_file,
            tls.key_file,
            tls.key_password,
            called=f"the client's certificate {files}",
        )
    return context


class TlsSocket(ssl.SSLSocket):
    """Where a plain socket that does not block would have to wait, this one says so as that does.

    What was received and not yet taken does not make it readable: see `pending`.
    """

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        with _as_blocking():
            return super().send(data, flags)

    def recv_into(
        self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0
    ) -> int:
        with _as_blocking():
            return super().recv_into(buffer, nbytes, flags)


@contextmanager
def _as_blocking() -> Iterator[None]:
    try:
        yield
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
        raise BlockingIOError from error
    except ssl.SSLError as error:
        # With TLS 1.3 a broker looks at the client's certificate behind the handshake.
        words = filter(None, (words_of(error), _about_certificate(error)))
        raise ConnectionError("; ".join(words)) from error


def wrap(tls: Tls, sock: socket, host: str) -> ssl.SSLSocket:
    """TLS over a connected socket, before its handshake. Raises `ConfigError`."""
    name = host if host else None
    return context_of(tls).wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)


@contextmanager
def handshake_errors(address: object) -> Iterator[None]:
    """A failed handshake as one line that names the broker and says what to do."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        hint = "name the CA that signed it (ssl.ca.location)"
        if error.verify_code in _OF_ANOTHER_NAME:
            hint = "connect by a name that it has, and have the broker advertise that"
        message = error.verify_message.rstrip(".")
        raise UntrustedBroker(
            f"{address}: its certificate is not trusted: {message}; {hint}"
        ) from error
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        raise
    except ssl.SSLError as error:
        hint = _about_certificate(error) or "is this a listener with TLS?"
        raise ConnectionError(f"{address}: no TLS connection: {words_of(error)}; {hint}") from error


def _about_certificate(error: ssl.SSLError) -> str:
    """What an alert of the broker means for the client's certificate, if it is about that."""
    alert = error.reason or ""
    if "ALERT_CERTIFICATE_REQUIRED" in alert:
        return "it asks for a certificate: name yours (ssl.certificate.location, ssl.key.location)"
    if "ALERT" in alert and ("CERTIFICATE" in alert or "UNKNOWN_CA" in alert):
        return "it does not take this client's certificate (ssl.certificate.location)"
    return ""
