"""Certificates in files: what TLS is made of, and made of anew when they change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """What this broker shows of itself, and whom it trusts, in PEM."""

    settings: str
    """What the names of their settings begin with."""
    certificate: Path
    key: Path | None
    """`None` where it is in the certificate's file."""
    key_password: str | None
    ca: Path | None

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for file in (self.certificate, self.key, self.ca) if file is not None)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises `ConfigError`, which names the settings."""
        # A function, or OpenSSL asks the terminal for the password of an encrypted key.
        password = self.key_password or ""
        try:
            context.load_cert_chain(self.certificate, self.key, lambda: password)
        except (OSError, ValueError) as error:
            names = f"{self.settings}.certificate.location {self.certificate}"
            if self.key is not None:
                names += f", {self.settings}.key.location {self.key}"
            raise ConfigError(f"{names}: {self._why_no_key(error)}") from error
        if self.ca is None:
            return
        try:
            context.load_verify_locations(self.ca)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self.settings}.ca.location {self.ca}: {_why_not_read(error)}"
            ) from error

    def _why_no_key(self, error: OSError | ValueError) -> str:
        """OpenSSL has one error for all that may be wrong with a key, so it is looked at."""
        if isinstance(error, ssl.SSLError):
            if "key values mismatch" in words_of(error):
                return "the key is not the certificate's"
            certificate, key = (
                file.read_text(errors="replace")
                for file in (self.certificate, self.key or self.certificate)
            )
            if "-----BEGIN CERTIFICATE-----" in certificate:
                if "PRIVATE KEY-----" not in key:
                    name = f"{self.settings}.key.location"
                    return f"there is no key in it: name the key's file, in PEM, with {name}"
                if "ENCRYPTED" in key:
                    is_wrong = "wrong" if self.key_password else "missing"
                    return f"the key is encrypted, and {self.settings}.key.password is {is_wrong}"
        return _why_not_read(error)


class Renewed(Generic[T]):
    """What is made of files, and made again when they change."""

    def __init__(self, files: Iterable[Path], make: Callable[[], T]) -> None:
        """`make` may raise `ConfigError`."""
        self._files = list(files)
        self._make = make
        self._stamps = self._stamps_now()
        self._told = ""
        self.value = make()
        """For connections that begin from now on."""

    def renew(self) -> None:
        """Read the files again if they have changed; where that fails, what was made of the old
        ones goes on, until it does not."""
        stamps = self._stamps_now()
        if stamps == self._stamps:
            return
        try:
            self.value = self._make()
        except ConfigError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.warning("%s; what was read before is shown until it can be read", error)
        else:
            self._stamps, self._told = stamps, ""
            _LOG.info("the certificate was read again: %s", self._files[0])

    def _stamps_now(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in self._files]


def words_of(error: ssl.SSLError) -> str:
    """What OpenSSL says. Errors that it has not raised have no reason at all."""
    reason: str = getattr(error, "reason", None) or error.args[-1]
    return reason.replace("_", " ").lower()


def _why_not_read(error: OSError | ValueError) -> str:
    if not isinstance(error, ssl.SSLError):
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    return "it has to be in PEM (of a keystore: openssl pkcs12 -in KEYSTORE -nodes)"


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Another one whenever the file has changed, or who may read it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ctime_ns, found.st_ino, found.st_size
