"""Bootstrap addresses as people write them."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tidemark.protocol.errors import ConfigError

DEFAULT_PORT: Final = 9092
NO_HOST_NAME: Final = "that is no host's name"
"""What to say of a host that cannot even be looked up: Python's codec for such names refuses it."""


class Address(NamedTuple):
    """A host name or IP literal (IPv6 without brackets), and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Sequence[str]) -> tuple[Address, ...]:
    """ "a:9092,b" or ["a:9092", "b"] as addresses; `ConfigError` names what is none."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    if not isinstance(parts, Iterable) or not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"{bootstrap!r} is no bootstrap address: give it as a str, host:port")
    addresses = tuple(_parse(part.strip()) for part in parts if part.strip())
    if not addresses:
        raise ConfigError("no bootstrap address: give one as host:port")
    return addresses


def _parse(text: str) -> Address:
    if "://" in text:
        raise ConfigError(f"{text!r} is not a bootstrap address: leave out what is before the host")
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        if rest and not rest.startswith(":"):
            host = ""
    elif text.count(":") > 1:
        host, port = text, ""  # a bare IPv6 literal
    else:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ConfigError(
            f"{text!r} is not a bootstrap address: give it as host:port, the port from 1 to 65535"
        )
    return Address(host, int(port) if port else DEFAULT_PORT)
