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
from tidemark.broker.network.certificates import Certificates, Renewed
from tidemark.protocol.openssl import words_of

_LOG: Final = logging.getLogger(__name__)


class PeerContexts(NamedTuple):
    """The two sides of a connection."""

    taking: ssl.SSLContext
    dialing: ssl.SSLContext
    is_required: bool
    """Or connections without are taken, too, and made where none with TLS comes about."""


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
        why_not = _why_not_taken(contexts)
        if why_not is not None:
            _LOG.warning(
                "peer.ssl.certificate.location %s: other brokers, with the same "
                "peer.ssl.ca.location, will not take this one: %s",
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


def _why_not_taken(contexts: PeerContexts) -> str | None:
    """Why a broker with the same files would not take this one for a broker; `None` if it would.
    The two shake hands in memory."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    dialing = contexts.dialing.wrap_bio(back, there)
    taking = contexts.taking.wrap_bio(there, back, server_side=True)
    try:
        for side in (dialing, taking, dialing, taking):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return words_of(error)
    return None
