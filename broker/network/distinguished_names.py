"""The subject of a certificate as text: RFC 2253, as Java's `X500Principal.getName()` writes it.

What is read of a certificate (RFC 5280), which OpenSSL has parsed and verified before:

    SEQUENCE                        the certificate
      SEQUENCE                      what is signed
        [0]                         the version; not in the oldest
        INTEGER, SEQUENCE ×3        serial number, algorithm, issuer, validity
        SEQUENCE                    the subject, least specific part first
          SET                       a part, mostly of one attribute
            SEQUENCE                an attribute
              OBJECT IDENTIFIER     its type
              any                   its value, mostly a string

Two subjects are the same text only if they differ in nothing but the types of their strings. A
comma in a value has a backslash before it, so an attribute CN that is `alice,O=Acme` becomes
`CN=alice\\,O\\=Acme`. The value of an attribute that has no name in RFC 2253, such as an address of
mail, or that is no string, is `#` and its bytes, and a type without a name is its numbers:
`1.2.840.113549.1.9.1=#160161`. Java escapes no control character but NUL; here all are, as `\\0A`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

SUBJECT_BYTES_MAX: Final = 1_000
"""As much as an ACL's principal may have."""

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_VERSION: Final = 0xA0
_OBJECT_IDENTIFIER: Final = 0x06
_FIELDS_BEFORE_SUBJECT: Final = 4
_KEYWORDS: Final = {
    bytes.fromhex("550403"): "CN",
    bytes.fromhex("550406"): "C",
    bytes.fromhex("550407"): "L",
    bytes.fromhex("550408"): "ST",
    bytes.fromhex("550409"): "STREET",
    bytes.fromhex("55040a"): "O",
    bytes.fromhex("55040b"): "OU",
    bytes.fromhex("0992268993f22c640119"): "DC",
    bytes.fromhex("0992268993f22c640101"): "UID",
}
"""RFC 2253, section 2.3: all that have a name there."""
_ENCODINGS: Final = {
    0x0C: "utf-8",  # UTF8String
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # T61String, as it is used
    0x16: "ascii",  # IA5String
    0x1B: "ascii",  # GeneralString
    0x1E: "utf-16-be",  # BMPString
}
_ESCAPED: Final = re.compile(r'[,=+<>#;"\\]|\A +| +\Z|[\x00-\x1f\x7f-\x9f]')


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def distinguished_name(certificate: bytes) -> str:
    """The subject of a certificate in DER; empty if it has none.

    Raises `ValueError` with what is wrong, for a subject that is not DER or is too long.
    """
    (whole,) = _some(certificate, 1)
    signed = _content(_some(_content(whole, _SEQUENCE), 1)[0], _SEQUENCE)
    has_version = signed[:1] == bytes([_VERSION])
    subject = _some(signed, _FIELDS_BEFORE_SUBJECT + 1 + has_version)[-1]
    if len(subject.whole) > SUBJECT_BYTES_MAX:
        raise ValueError(
            f"its subject has {len(subject.whole)} bytes, and {SUBJECT_BYTES_MAX} are allowed"
        )
    parts = [_part(each) for each in _elements(_content(subject, _SEQUENCE))]
    return ",".join(reversed(parts))


def _part(part: _Element) -> str:
    attributes = [_attribute(each) for each in _elements(_content(part, _SET))]
    if not attributes:
        raise ValueError("a part of its subject has nothing in it")
    return "+".join(attributes)


def _attribute(attribute: _Element) -> str:
    both = list(_elements(_content(attribute, _SEQUENCE)))
    if len(both) != 2:
        raise ValueError("an attribute of its subject is not a type and a value")
    kind, value = both
    number = _content(kind, _OBJECT_IDENTIFIER)
    keyword = _KEYWORDS.get(number)
    text = _text(value)
    if keyword is None or text is None:
        return f"{keyword or _dotted(number)}=#{value.whole.hex()}"
    return f"{keyword}={_ESCAPED.sub(_escape, text)}"


def _text(value: _Element) -> str | None:
    """`None` for what is no string, or none of its type."""
    encoding = _ENCODINGS.get(value.tag)
    if encoding is None:
        return None
    try:
        return value.content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _escape(found: re.Match[str]) -> str:
    letters = found[0]
    if letters.isprintable():
        return "".join(f"\\{letter}" for letter in letters)
    return "".join(f"\\{byte:02X}" for byte in letters.encode())


def _dotted(number: bytes) -> str:
    """An object identifier's numbers, seven bits a byte (X.690, section 8.19)."""
    if not number or number[-1] & 0x80:
        raise ValueError("an attribute of its subject has no type")
    numbers, current = list[int](), 0
    for byte in number:
        if byte == 0x80 and not current:
            raise ValueError("the type of an attribute of its subject begins with nothing")
        current = current << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(current)
            current = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _some(data: bytes, count: int) -> list[_Element]:
    """The first elements; what is behind them is not looked at."""
    found = [each for _, each in zip(range(count), _elements(data), strict=False)]
    if len(found) < count:
        raise ValueError(f"it ends after {len(found)} of {count} fields")
    return found


def _content(element: _Element, tag: int) -> bytes:
    if element.tag != tag:
        raise ValueError(f"it has a field of type {element.tag:#x} where {tag:#x} belongs")
    return element.content


def _elements(data: bytes) -> Iterator[_Element]:
    """In DER each length has one form; in another, a subject would have several."""
    at = 0
    while at < len(data):
        first, begins = at, at + 2
        if data[first] & 0x1F == 0x1F:
            raise ValueError("it has a field of a type that no certificate has")
        size = data[at + 1] if at + 1 < len(data) else 0x80
        if size >= 0x80:
            begins += size & 0x7F
            long_size = data[at + 2 : begins]
            size = int.from_bytes(long_size, "big")
            if size < 0x80 or not long_size[0]:
                raise ValueError("it has a field whose length is not as DER writes it")
        at = begins + size
        if at > len(data):
            raise ValueError("it has a field that is longer than what it is in")
        yield _Element(data[first], data[begins:at], data[first:at])
