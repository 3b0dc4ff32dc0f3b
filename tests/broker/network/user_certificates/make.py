"""Makes the certificates here anew: `python -m tests.broker.network.user_certificates.make`.

With OpenSSL's command, which signs anything: its own way to write a subject has no NUL, and no two
values in one. The keys protect nothing; they are here so that tests need no OpenSSL.
"""

import base64
import subprocess
from tempfile import NamedTemporaryFile

from tests.broker.network.user_certificates import (
    CN,
    FOLDER,
    SUBJECTS,
    Attribute,
    der,
    identifier,
    sequence,
    subject,
    to_be_signed,
)

_ALGORITHM = sequence(identifier("1.2.840.10045.4.3.2"))  # ECDSA with SHA-256
_VALIDITY = sequence(der(0x18, b"20260101000000Z"), der(0x18, b"21260101000000Z"))
_OF_A_CA = der(
    0xA3,
    sequence(
        sequence(
            identifier("2.5.29.19"), der(0x01, b"\xff"), der(0x04, sequence(der(0x01, b"\xff")))
        )
    ),
)


def _openssl(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["openssl", *arguments], input=given, capture_output=True, check=True
    ).stdout


def _new_key() -> bytes:
    return _openssl(
        "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-outform", "PEM"
    )


def _signed(whole: bytes, key: bytes) -> bytes:
    with NamedTemporaryFile() as file:
        file.write(key)
        file.flush()
        signature = _openssl("dgst", "-sha256", "-sign", file.name, given=whole)
    return sequence(whole, _ALGORITHM, der(0x03, b"\0", signature))


def _pem(certificate: bytes) -> bytes:
    text = base64.encodebytes(certificate).replace(b"\n", b"")
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return b"\n".join([b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----", b""])


def main() -> None:
    signer, issuer = _new_key(), subject([[Attribute(CN, b"Tidemark's test CA of users")]])
    keys = {name: _new_key() for name in SUBJECTS}
    for number, name in enumerate(("ca", *SUBJECTS), 1):
        key = keys.get(name, signer)
        public = _openssl("pkey", "-pubout", "-outform", "DER", given=key)
        whole = to_be_signed(
            subject(SUBJECTS[name]) if name in SUBJECTS else issuer,
            issuer=issuer,
            algorithm=_ALGORITHM,
            validity=_VALIDITY,
            behind=public if name in SUBJECTS else public + _OF_A_CA,
            number=number,
        )
        is_shown_with_key = name in SUBJECTS
        (FOLDER / f"{name}.pem").write_bytes(
            _pem(_signed(whole, signer)) + (key if is_shown_with_key else b"")
        )


if __name__ == "__main__":
    main()
