"""The certificate that listeners with TLS show, and what they ask of clients."""

from __future__ import annotations

import ssl
from typing import Final, TypeAlias

from tidemark.broker.config import BrokerSettings
from tidemark.broker.network.certificates import Certificates, Renewed

ListenerTls: TypeAlias = Renewed[ssl.SSLContext]

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def listener_tls(settings: BrokerSettings) -> ListenerTls:
    """What the settings say of it, as it is in the files. Raises `ConfigError`."""
    assert settings.ssl_certificate_location is not None
    certificates = Certificates(
        settings="ssl",
        certificate=settings.ssl_certificate_location,
        key=settings.ssl_key_location,
        key_password=settings.ssl_key_password,
        ca=settings.ssl_ca_location,
    )

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]
        certificates.load_into(context)
        return context

    return Renewed(certificates.files, make)
