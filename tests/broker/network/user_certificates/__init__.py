"""Certificates of clients, by a CA of their own, and how to write a subject by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
CA: Final = str(FOLDER / "ca.pem")
UTF8, PRINTABLE, IA5 = 0x0C, 0x13, 0x16


class Attribute(NamedTuple):
    """The type with its numbers, and the value with its tag: whatever they are."""

    kind: str
    value: bytes
    tag: int = UTF8


COUNTRY, ORGANISATION, OU, CN = "2.5.4.6", "2.5.4.10", "2.5.4.11", "2.5.4.3"
UID, EMAIL = "0.9.2342.19200300.100.1.1", "1.2.840.113549.1.9.1"
OF_ACME: Final = (
    [Attribute(COUNTRY, b"DE", PRINTABLE)],
    [Attribute(ORGANISATION, b"Acme")],
    [Attribute(OU, b"Data")],
)
SUBJECTS: Final = {
    "admin": [[Attribute(CN, b"admin")]],
    "alice": [*OF_ACME, [Attribute(CN, b"alice")]],
    "bob": [*OF_ACME, [Attribute(CN, b"bob")]],
    # Those of others that look like hers to who does not look closely.
    "in-one": [[Attribute(CN, b"alice,OU=Data,O=Acme,C=DE")]],
    "with-nul": [*OF_ACME, [Attribute(CN, b"alice\0")]],
    "of-two": [*OF_ACME, [Attribute(CN, b"alice"), Attribute(CN, b"mallory")]],
    "nameless": [],
    "odd": [
        [Attribute("1.3.6.1.4.1.99999.1", b"\0\x05", tag=0x03)],
        [Attribute(ORGANISATION, "Ümlaut + Söhne, <Kiel>".encode())],
        [Attribute(EMAIL, b"a@b.c", IA5)],
        [Attribute(OU, b"Data"), Attribute(UID, b"7")],
        [Attribute(CN, b' "odd"\n; #1 ')],
    ],
}
NAMES: Final = {
    "admin": "CN=admin",
    "alice": "CN=alice,OU=Data,O=Acme,C=DE",
    "bob": "CN=bob,OU=Data,O=Acme,C=DE",
    "in-one": r"CN=alice\,OU\=Data\,O\=Acme\,C\=DE",
    "with-nul": r"CN=alice\00,OU=Data,O=Acme,C=DE",
    "of-two": "CN=alice+CN=mallory,OU=Data,O=Acme,C=DE",
    "nameless": "",
    "odd": r"CN=\ \"odd\"\0A\; \#1\ ,OU=Data+UID=7,1.2.840.113549.1.9.1=#16056140622e63,"
    r"O=Ümlaut \+ Söhne\, \<Kiel\>,1.3.6.1.4.1.99999.1=#03020005",
}
"""What the subjects are as text."""


def file_of(name: str) -> str:
    """Certificate and key."""
    return str(FOLDER / f"{name}.pem")


def der(tag: int, *content: bytes) -> bytes:
    whole = b"".join(content)
    if len(whole) < 0x80:
        return bytes([tag, len(whole)]) + whole
    size = len(whole).to_bytes((len(whole).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + whole


def sequence(*content: bytes) -> bytes:
    return der(0x30, *content)


def identifier(dotted: str) -> bytes:
    first, second, *others = map(int, dotted.split("."))
    content = b""
    for number in (40 * first + second, *others):
        part = [number & 0x7F]
        while number := number >> 7:
            part.append(0x80 | number & 0x7F)
        content += bytes(reversed(part))
    return der(0x06, content)


def subject(parts: list[list[Attribute]]) -> bytes:
    """Least specific part first, as certificates have it."""
    return sequence(
        *(
            der(0x31, *(sequence(identifier(kind), der(tag, value)) for kind, value, tag in part))
            for part in parts
        )
    )


def to_be_signed(
    subject: bytes,
    *,
    issuer: bytes = sequence(),
    algorithm: bytes = sequence(),
    validity: bytes = sequence(),
    behind: bytes = b"",
    version: bytes = der(0xA0, der(0x02, b"\x02")),
    number: int = 1,
) -> bytes:
    serial = der(0x02, bytes([number]))
    return sequence(version, serial, algorithm, issuer, validity, subject, behind)
