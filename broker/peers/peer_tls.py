"""TLS between brokers: what each shows the other, and who is one at all.

Both sides show a certificate, and whoever has one that is signed by `peer.ssl.ca.location` may be
any broker of the cluster: which one, the Hello says. Names in certificates are not looked at.
"""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple, TypeAlias

from tidemark.broker.config import BrokerSettings
from tidemark.broker.network.certificates import Certificates, Renewed, words_of


class PeerContexts(NamedTuple):
    """The two sides of a connection."""

    taking: ssl.SSLContext
    dialing: ssl.SSLContext
    is_required: bool
    """Or connections without are taken, too, and made where none with TLS comes about."""


# What OpenSSL makes of bytes that are not TLS.
_OTHER_BYTES: Final = ("wrong version number", "http request", "packet length", "record layer")
_DOES_NOT_SPEAK: Final = "it may not speak TLS (its peer.ssl.certificate.location)"

PeerTls: TypeAlias = Renewed[PeerContexts]


def peer_tls(settings: BrokerSettings) -> PeerTls | None:
    """What the settings say of it, as it is in the files; `None` for nothing. Raises
    `ConfigError`."""
    if settings.peer_ssl_certificate_location is None:
        return None
    certificates = Certificates(
        settings="peer.ssl",
        certificate=settings.peer_ssl_certificate_location,
        key=settings.peer_ssl_key_location,
        key_password=settings.peer_ssl_key_password,
        ca=settings.peer_ssl_ca_location,
    )

    def make() -> PeerContexts:
        taking, dialing = (
            _context(protocol, certificates)
            for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
        )
        taking.num_tickets = 0  # no session is ever taken up again
        return PeerContexts(taking, dialing, settings.peer_ssl_required)

    return Renewed(certificates.files, make)


def _context(protocol: ssl._SSLMethod, certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    certificates.load_into(context)
    return context


def why_no_tls(error: OSError) -> str:
    """Why a handshake with another broker has failed, and which setting to look at."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted: {error.verify_message} (peer.ssl.ca.location says"
                " who signs those of brokers)"
            )
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ConnectionError():
            return f"it hung up in the handshake; {_DOES_NOT_SPEAK}"
        case ssl.SSLError():
            reason = words_of(error)
        case _:
            return f"in the handshake: {error.strerror or error}"
    if any(each in reason for each in _OTHER_BYTES):
        return f"{reason}; {_DOES_NOT_SPEAK}"
    if "did not return a certificate" in reason:
        return "it shows no certificate (its peer.ssl.certificate.location)"
    if "alert" in reason and ("certificate" in reason or "unknown ca" in reason):
        return f"{reason}: it does not trust this broker's certificate (its peer.ssl.ca.location)"
    return reason
