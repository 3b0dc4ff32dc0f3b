"""What OpenSSL says of certificates and keys, in words. Files themselves: where TLS is tested."""

import ssl

import pytest

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.openssl import load_certificate


def test_a_reason_that_openssl_gives_is_told() -> None:
    class Refusing(ssl.SSLContext):
        """As with a key of 512 bits."""

        def load_cert_chain(self, *_files: object) -> None:
            error = ssl.SSLError(1, "[SSL: EE_KEY_TOO_SMALL] ee key too small (_ssl.c:1)")
            error.reason = "EE_KEY_TOO_SMALL"
            raise error

    with pytest.raises(ConfigError, match=r"^its files: ee key too small$"):
        load_certificate(Refusing(ssl.PROTOCOL_TLS_CLIENT), "a.pem", None, None, called="its files")
