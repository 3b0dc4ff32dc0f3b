"""Where a broker listens and what it tells clients to connect to.

A listener is written as Kafka writes it, `NAME://host:port`, or as `host:port` alone, which means
the listener called PLAINTEXT. An IPv6 address goes in brackets: `[::1]:9092`.
"""

import re
from enum import Enum

from tidemark.protocol.values import dataclass

DEFAULT_NAME = "PLAINTEXT"
_PLAIN_HOST = re.compile(r"([\w-]{1,63}\.)*[\w-]{0,63}|[\da-fA-F:]+", re.ASCII)
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Those of this machine, by what stands for every interface."""


class SecurityProtocol(Enum):
    """What a listener asks of a client before it serves it."""

    PLAINTEXT = "PLAINTEXT"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SSL = "SSL"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port. Port 0 is any free port; an empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether this stands for every interface, so that no client can connect *to* it."""
        return self.host in _LOOPBACKS

    @property
    def from_here(self) -> "Address":
        """Where a client on this machine connects: its loopback, for every interface."""
        return Address(_LOOPBACKS.get(self.host, self.host), self.port)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener's name and an address: one entry of `listeners` or `advertised.listeners`."""

    name: str
    address: Address
    is_named: bool = True
    """Whether the name was written, rather than understood."""

    def __str__(self) -> str:
        return f"{self.name}://{self.address}" if self.is_named else str(self.address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address that clients connect to, with all that was configured about it."""

    name: str
    address: Address
    advertised: Address | None
    protocol: SecurityProtocol

    @property
    def requires_sasl(self) -> bool:
        return self.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def speaks_tls(self) -> bool:
        return self.protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    def shown_to(self, *, local_host: str, bound_port: int) -> Address:
        """The address to give to a client that reached this listener at `local_host`.

        That is the advertised one; without it the address listened on. A listener on every
        interface gives each client the very address by which that client came, which is one it
        can reach. A port of 0 is the port that was bound.
        """
        chosen = self.advertised or self.address
        host = local_host if chosen.is_wildcard else chosen.host
        return Address(host, chosen.port or bound_port)


def parse_address(text: str) -> Address:
    """`host:port`, `:port`, `[ipv6]:port`. Raises `ValueError` with what is missing."""
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        raise ValueError("an address with a port, as host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address in brackets, as [::1]:9092")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError("a port from 0 to 65535 behind the last colon")
    _check_host(host)
    return Address(host, int(port))


def _check_host(host: str) -> None:
    if not _PLAIN_HOST.fullmatch(host):  # else nobody waits for the codec to be imported
        try:
            host.encode("idna")
        except UnicodeError:
            raise ValueError(
                "a host's name before the port, with 1 to 63 characters between its dots"
            ) from None


def parse_endpoint(text: str) -> Endpoint:
    """`NAME://host:port` or `host:port`. Raises `ValueError` with what is missing."""
    name, scheme, address = text.strip().rpartition("://")
    if scheme and not name:
        raise ValueError("a listener name before ://")
    return Endpoint(name.upper() or DEFAULT_NAME, parse_address(address), is_named=bool(scheme))
