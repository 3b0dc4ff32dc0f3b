"""Certificates in files: what TLS is made of, and made of anew when they change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.openssl import load_certificate, words_of
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
        names = f"{self.settings}.certificate.location {self.certificate}"
        if self.key is not None:
            names += f", {self.settings}.key.location {self.key}"
        load_certificate(
            context,
            self.certificate,
            self.key,
            self.key_password,
            called=names,
            settings=self.settings,
        )
        if self.ca is None:
            return
        try:
            context.load_verify_locations(self.ca)
        except (OSError, ValueError) as error:
            why = "it has to be in PEM" if isinstance(error, ssl.SSLError) else words_of(error)
            raise ConfigError(f"{self.settings}.ca.location {self.ca}: {why}") from error


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


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Another one whenever the file has changed, or who may read it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ctime_ns, found.st_ino, found.st_size
