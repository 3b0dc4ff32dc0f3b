"""What OpenSSL is given of a certificate, and what it says, in words."""

import ssl
from pathlib import Path

from tidemark.protocol.errors import ConfigError


def load_certificate(
    context: ssl.SSLContext,
    certificate: Path | str,
    key: Path | str | None,
    password: str | None,
    *,
    called: str,
    settings: str = "ssl",
) -> None:
    """Have connections show it. A `key` that is None is in the certificate's file.

    Raises `ConfigError`: what the files are `called`, and what is wrong with them. The names of
    their settings begin with `settings`.
    """
    is_encrypted = False

    def ask() -> str:
        nonlocal is_encrypted
        is_encrypted = True
        return password or ""

    try:
        # A function, or OpenSSL asks the terminal for the password of an encrypted key.
        context.load_cert_chain(certificate, key, ask)
    except (OSError, ValueError) as error:
        why = words_of(error)
        if isinstance(error, ssl.SSLError) and not error.reason:
            # OpenSSL has one error, without a reason, for most that may be wrong with a key.
            why = _why_no_key(is_encrypted, password, settings)
        elif why == "key values mismatch":
            why = "the key is not the certificate's"
        raise ConfigError(f"{called}: {why}") from error


def _why_no_key(is_encrypted: bool, password: str | None, settings: str) -> str:
    if is_encrypted:
        is_wrong = "wrong" if password else "missing"
        return f"the key is encrypted, and {settings}.key.password is {is_wrong}"
    return (
        "it has to have a certificate and its key, in PEM: name a key in a file of its own with "
        f"{settings}.key.location (of a keystore: openssl pkcs12 -in KEYSTORE -nodes)"
    )


def words_of(error: OSError | ValueError) -> str:
    """OpenSSL's reason, without the name of its function and the line; else what the system says.

    Errors that OpenSSL has not raised have no reason at all.
    """
    if isinstance(error, ssl.SSLError):
        reason: str = getattr(error, "reason", None) or error.args[-1]
        return reason.replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
