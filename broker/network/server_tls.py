"""The certificate that listeners with TLS show, and what they ask of clients."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Final

from tidemark.broker.config import BrokerSettings
from tidemark.protocol.errors import ConfigError

_LOG: Final = logging.getLogger(__name__)
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class ServerTls:
    """What the settings say of TLS, as it is in the files. Raises `ConfigError`."""

    def __init__(self, settings: BrokerSettings) -> None:
        assert settings.ssl_certificate_location is not None
        self._settings = settings
        self._files = [
            file
            for file in (
                settings.ssl_certificate_location,
                settings.ssl_key_location,
                settings.ssl_ca_location,
            )
            if file is not None
        ]
        self._stamps = self._stamps_now()
        self._told = ""
        self.context = _context(settings)
        """For connections that come from now on."""

    def renew(self) -> None:
        """Read the files again if they have changed; where that fails, the old ones go on, until it
        does not."""
        stamps = self._stamps_now()
        if stamps == self._stamps:
            return
        try:
            self.context = _context(self._settings)
        except ConfigError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.warning("%s; what was read before is shown until it can be read", error)
        else:
            self._stamps, self._told = stamps, ""
            _LOG.info("the certificate was read again: %s", self._files[0])

    def _stamps_now(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in self._files]


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Another one whenever the file has changed, or who may read it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ctime_ns, found.st_ino, found.st_size


def _context(settings: BrokerSettings) -> ssl.SSLContext:
    certificate, key, ca = (
        settings.ssl_certificate_location,
        settings.ssl_key_location,
        settings.ssl_ca_location,
    )
    assert certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # A function, or OpenSSL asks the terminal for the password of an encrypted key.
    password = settings.ssl_key_password or ""
    try:
        context.load_cert_chain(certificate, key, lambda: password)
    except (OSError, ValueError) as error:
        names = f"ssl.certificate.location {certificate}"
        if key is not None:
            names += f", ssl.key.location {key}"
        raise ConfigError(f"{names}: {_words(error)}") from error
    context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except (OSError, ValueError) as error:
            raise ConfigError(f"ssl.ca.location {ca}: {_words(error)}") from error
    return context


def _words(error: Exception) -> str:
    """What is wrong with a file, and what it should be."""
    if not isinstance(error, ssl.SSLError):
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "key values mismatch" in reason:
        return "the key is not the certificate's"
    if "bad decrypt" in reason or "bad password" in reason:
        return "the key is encrypted with another password than ssl.key.password"
    return f"{reason}: it has to be in PEM (of a keystore: openssl pkcs12 -in KEYSTORE -nodes)"
