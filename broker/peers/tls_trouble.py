"""Why brokers do not come to speak TLS with each other, and which setting to look at."""

from __future__ import annotations

import ssl
from typing import Final

from tidemark.protocol.openssl import words_of

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
