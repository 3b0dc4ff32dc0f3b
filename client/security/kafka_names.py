"""SASL and TLS by the names that Kafka's clients have for them, Java's and librdkafka's, so that a
configuration that works there works here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tidemark.client.security.sasl import MECHANISMS, Sasl
from tidemark.client.security.tls import Tls
from tidemark.protocol.errors import ConfigError

PROTOCOL: Final = "security.protocol"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SASL_NAMES: Final = (
    "sasl.mechanism",
    "sasl.mechanisms",  # librdkafka's
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
)
_TLS_NAMES: Final = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
)
NAMES: Final = (PROTOCOL, *_SASL_NAMES, *_TLS_NAMES)
_LOGIN: Final = re.compile(r"""\s(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
_TO_PEM: Final = "only PEM is read: convert it, and set the type to PEM"


def read_security(
    options: Mapping[str, str], *, prefix: str = ""
) -> tuple[Sasl | None, Tls | None]:
    """Who one is and whom one trusts, of options among `NAMES`; others are not looked at.

    `prefix` is what their names had in front, for the `ConfigError` of one that cannot be used.
    """
    read = _Reader(options, prefix)
    protocol = read.get(PROTOCOL, "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise read.wrong(PROTOCOL, f"one of {', '.join(PROTOCOLS)}")
    has_sasl, has_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    for names, is_used in ((_SASL_NAMES, has_sasl), (_TLS_NAMES, has_tls)):
        if not is_used and (idle := read.given(names)):
            raise ConfigError(f"the option {idle} has no effect with {prefix}{PROTOCOL}={protocol}")
    return (_sasl(read) if has_sasl else None), (_tls(read) if has_tls else None)


class _Reader:
    def __init__(self, options: Mapping[str, str], prefix: str) -> None:
        self._options = options
        self._prefix = prefix

    def get(self, name: str, default: str = "") -> str:
        return self._options.get(name, default).strip()

    def first(self, *names: str) -> str | None:
        return next((value for name in names if (value := self.get(name))), None)

    def given(self, names: Iterable[str]) -> str | None:
        return next((self._prefix + name for name in names if name in self._options), None)

    def wrong(self, name: str, expected: str) -> ConfigError:
        return ConfigError(
            f"the option {self._prefix}{name} must be {expected}, not {self.get(name)!r}"
        )

    def missing(self, name: str, why: str) -> ConfigError:
        return ConfigError(f"the option {self._prefix}{name} is missing: {why}")


def _sasl(read: _Reader) -> Sasl:
    mechanism = read.first("sasl.mechanism", "sasl.mechanisms")
    if mechanism is None:
        raise read.missing("sasl.mechanism", f"one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise read.wrong("sasl.mechanism", f"one of {', '.join(MECHANISMS)}")
    login = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in _LOGIN.findall(read.get("sasl.jaas.config"))
    }
    username = read.first("sasl.username") or login.get("username")
    password = read.first("sasl.password") or login.get("password")
    if username is None:
        raise read.missing("sasl.username", "or a sasl.jaas.config with username and password")
    if password is None:
        raise read.missing("sasl.password", "or a sasl.jaas.config with username and password")
    return Sasl(mechanism, username, password)


def _tls(read: _Reader) -> Tls:
    for store in ("ssl.truststore", "ssl.keystore"):
        kind = f"{store}.type"
        if read.get(f"{store}.location") and read.get(kind, "JKS").upper() != "PEM":
            raise (
                read.missing(kind, _TO_PEM)
                if not read.get(kind)
                else read.wrong(kind, f"PEM ({_TO_PEM})")
            )
    algorithm = read.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):
        raise read.wrong("ssl.endpoint.identification.algorithm", "https or none")
    verification = read.get("enable.ssl.certificate.verification", "true").lower()
    if verification not in ("true", "false"):
        raise read.wrong("enable.ssl.certificate.verification", "true or false")
    return Tls(
        ca_file=read.first("ssl.ca.location", "ssl.truststore.location"),
        ca_pem=read.first("ssl.ca.pem", "ssl.truststore.certificates"),
        certificate_file=read.first("ssl.certificate.location", "ssl.keystore.location"),
        key_file=read.first("ssl.key.location"),
        key_password=read.first("ssl.key.password"),
        checks_name=algorithm == "https",
        checks_certificate=verification == "true",
    )
