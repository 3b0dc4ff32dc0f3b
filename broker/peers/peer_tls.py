"""TLS between brokers: what each shows the other, and who is one at all.

Both sides show a certificate, and whoever has one that is signed by `peer.ssl.ca.location` may be
any broker of the cluster: which one, the Hello says. Names in certificates are not looked at.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from tidemark.broker.config import BrokerSettings
from tidemark.broker.network.certificates import Certificates, Renewed, words_of


class PeerContexts(NamedTuple):
    """The two sides of a connection."""

    taking: ssl.SSLContext
    dialing: ssl.SSLContext
    is_required: bool
    """Or connections without are taken, too, and made where none with TLS comes about."""


_LOG: Final = logging.getLogger(__name__)
# What OpenSSL makes of bytes that are not TLS.
_OTHER_BYTES: Final = ("wrong version number", "http request", "packet length", "record layer")
# X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED; X509_V_ERR_INVALID_PURPOSE.
_OF_TIME: Final = frozenset({9, 10})
_OF_PURPOSE: Final = 26
_RENEW: Final = "renew peer.ssl.certificate.location there, or set the clocks right"
_RENEW_OWN: Final = "renew peer.ssl.certificate.location, or set the clocks right"
_NOT_FOR_BOTH: Final = (
    "not for both sides of a connection: in its extendedKeyUsage serverAuth and clientAuth have to "
    "be, or nothing"
)
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
        contexts = PeerContexts(taking, dialing, settings.peer_ssl_required)
        why_not = _why_not_by_others(contexts)
        if why_not is not None:
            _LOG.warning(
                "other brokers will not take this one, if they have the same peer.ssl.ca.location: "
                "its certificate %s is %s",
                certificates.certificate,
                why_not,
            )
        return contexts

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
            return _why_not_trusted(error)
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
    if "alert" not in reason:
        return reason
    if "expired" in reason:
        return f"it refuses this broker's certificate, which has expired: {_RENEW_OWN}"
    if "unsupported certificate" in reason:
        return f"it refuses this broker's certificate, which is {_NOT_FOR_BOTH}"
    if "certificate" in reason or "unknown ca" in reason:
        return f"{reason}: it does not trust this broker's certificate (its peer.ssl.ca.location)"
    return reason


def _why_not_trusted(error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message
    if error.verify_code in _OF_TIME:
        return f"its certificate is not trusted, {said}: {_RENEW}"
    if error.verify_code == _OF_PURPOSE:
        return f"its certificate is {_NOT_FOR_BOTH}"
    return (
        f"its certificate is not trusted, {said}: peer.ssl.ca.location says who signs those of "
        "brokers"
    )


def _why_not_by_others(contexts: PeerContexts) -> str | None:
    """Why a broker with the same files would not take this one for a broker; `None` if it would."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    dialing = contexts.dialing.wrap_bio(back, there)
    taking = contexts.taking.wrap_bio(there, back, server_side=True)
    try:
        for side in (dialing, taking, dialing, taking):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return _why_not_trusted(error).removeprefix("its certificate is ")
    except ssl.SSLError as error:
        return words_of(error)
    return None
