"""Names in certificates as text: Java's, one for each name, and no bytes that are read wrongly."""

from __future__ import annotations

import re
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.broker.network.user_certificates import (
    CN,
    COUNTRY,
    EMAIL,
    IA5,
    NAMES,
    OF_ACME,
    ORGANISATION,
    SUBJECTS,
    UID,
    UTF8,
    Attribute,
    der,
    file_of,
    identifier,
    sequence,
    subject,
    to_be_signed,
)
from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.network.distinguished_names import SUBJECT_BYTES_MAX, distinguished_name

KEYWORDS = {
    CN: "CN",
    COUNTRY: "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    ORGANISATION: "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    UID: "UID",
}
"""RFC 2253, section 2.3."""


def in_certificate(whole: bytes) -> bytes:
    return sequence(to_be_signed(whole), sequence(), der(0x03, b"\0"))


def name_of(*parts: list[Attribute]) -> str:
    return distinguished_name(in_certificate(subject(list(parts))))


def certificate_in(file: str | Path) -> bytes:
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(Path(file).read_text().partition(end)[0] + end)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_certificate_is_called(name: str) -> None:
    assert distinguished_name(certificate_in(file_of(name))) == NAMES[name]
    assert name_of(*SUBJECTS[name]) == NAMES[name]


def test_one_that_openssl_has_made() -> None:
    assert distinguished_name(certificate_in(CERTIFICATES / "client.pem")) == "CN=client"


@pytest.mark.parametrize("kind", KEYWORDS)
def test_what_has_a_name_in_rfc_2253_has_it(kind: str) -> None:
    assert name_of([Attribute(kind, b"x")]) == f"{KEYWORDS[kind]}=x"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        # Those in RFC 2253, section 5.
        ("Sue, Grabbit and Runn", r"Sue\, Grabbit and Runn"),
        ("Before\rAfter", r"Before\0DAfter"),
        ("Lučić", "Lučić"),
        ("", ""),
        (" ", r"\ "),
        ("  a  b  ", r"\ \ a  b\ \ "),
        ("#", r"\#"),
        ("a#b=c", r"a\#b\=c"),
        ('<"\\+;,>', r"\<\"\\\+\;\,\>"),
        ("a\0", r"a\00"),
        (" \n", r"\ \0A"),
        ("\u0085", r"\C2\85"),
    ],
)
def test_what_is_written_otherwise(value: str, written: str) -> None:
    assert name_of([Attribute(CN, value.encode())]) == f"CN={written}"


@pytest.mark.parametrize(
    ("value", "tag", "written"),
    [
        (b"a", 0x13, "a"),
        (b"\xe9", 0x14, "é"),
        (b"a", IA5, "a"),
        (b"a", 0x1B, "a"),
        (b"\x01\x07", 0x1E, "ć"),
        # What is no string, or none of its type, is its bytes.
        (b"\0\0\x01\x07", 0x1C, "#1c0400000107"),
        (b"\xff", UTF8, "#0c01ff"),
        (b"\xc3\xa9", 0x13, "#1302c3a9"),
        (b"\xd8\x00", 0x1E, "#1e02d800"),
        (b"\0\x05", 0x03, "#03020005"),
        (b"\x0c\x01a", 0x2C, "#2c030c0161"),
    ],
)
def test_values_of_each_type(value: bytes, tag: int, written: str) -> None:
    assert name_of([Attribute(CN, value, tag)]) == f"CN={written}"


@pytest.mark.parametrize(
    "kind", [EMAIL, "2.5.4.5", "2.999.1", "1.3.6.1.4.1.4294967296", "0.0", "1.39", "2.40"]
)
def test_another_type_is_its_numbers_and_its_value_the_bytes(kind: str) -> None:
    assert name_of([Attribute(kind, b"a")]) == f"{kind}=#0c0161"


names = st.lists(
    st.lists(
        st.builds(
            Attribute,
            st.sampled_from([*KEYWORDS, EMAIL]),
            st.text(alphabet=st.sampled_from('aA,+=\\"<>;# \0\n0é\u2028😀'), max_size=6).map(
                str.encode
            )
            | st.binary(max_size=3),
            st.sampled_from([UTF8, UTF8, UTF8, 0x03]),
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=4,
)


def read_back(name: str) -> list[list[tuple[str, str | bytes]]]:
    """What RFC 2253 says that a name is: types, and values as text or as their bytes."""
    parts: list[list[tuple[str, str | bytes]]] = []
    joins = True
    for attribute, joint in re.findall(r"((?:[^,+\\]|\\.)+)([,+]|\Z)", name, re.DOTALL):
        kind, _, written = attribute.partition("=")
        value: str | bytes = (
            bytes.fromhex(written[1:]) if written.startswith("#") else unescaped(written)
        )
        if joins:
            parts.append([])
        parts[-1].append((kind, value))
        joins = joint == ","
    return parts


def unescaped(written: str) -> str:
    def taken(found: re.Match[str]) -> bytes:
        return bytes.fromhex(found[1]) if len(found[1]) == 2 else found[1].encode()

    pieces = re.split(r"(\\(?:[0-9A-F]{2}|.))", written)
    return b"".join(
        taken(found) if (found := re.fullmatch(r"\\([0-9A-F]{2}|.)", each)) else each.encode()
        for each in pieces
    ).decode()


@given(parts=names)
@example(parts=[[Attribute(CN, b"alice,O=Acme")]])
@example(parts=[[Attribute(CN, b"alice+O=Acme")]])
@example(parts=[[Attribute(CN, b"#0c0161")]])
@example(parts=[[Attribute(CN, b"\\")], [Attribute(ORGANISATION, b"\\,CN=a")]])
def test_a_name_says_all_that_is_in_the_subject_and_nothing_else(
    parts: list[list[Attribute]],
) -> None:
    meant: list[list[tuple[str, str | bytes]]] = []
    for part in reversed(parts):
        meant.append([])
        for kind, value, tag in part:
            said: str | bytes = der(tag, value)
            if kind in KEYWORDS and tag == UTF8:
                with suppress(UnicodeDecodeError):
                    said = value.decode()
            meant[-1].append((KEYWORDS.get(kind, kind), said))
    assert read_back(name_of(*parts)) == meant


@given(parts=names)
def test_a_name_has_no_control_characters(parts: list[list[Attribute]]) -> None:
    assert not re.search("[\x00-\x1f\x7f-\x9f]", name_of(*parts))


def test_a_certificate_of_the_first_version_has_a_subject_too() -> None:
    whole = sequence(to_be_signed(subject(SUBJECTS["bob"]), version=b""))
    assert distinguished_name(whole) == NAMES["bob"]


def test_the_issuer_is_not_the_subject() -> None:
    whole = to_be_signed(subject(SUBJECTS["bob"]), issuer=subject(SUBJECTS["alice"]))
    assert distinguished_name(sequence(whole)) == NAMES["bob"]


def test_a_long_subject_is_refused() -> None:
    def of_size(size: int) -> bytes:
        rest = size - len(subject([[Attribute(CN, b"a" * 900)]])) + 900
        return subject([[Attribute(CN, b"a" * rest)]])

    assert len(of_size(SUBJECT_BYTES_MAX)) == SUBJECT_BYTES_MAX
    assert distinguished_name(in_certificate(of_size(SUBJECT_BYTES_MAX)))
    with pytest.raises(ValueError, match="its subject has 1001 bytes, and 1000 are allowed"):
        distinguished_name(in_certificate(of_size(SUBJECT_BYTES_MAX + 1)))


ATTRIBUTE = sequence(identifier(CN), der(UTF8, b"a"))


@pytest.mark.parametrize(
    "whole",
    [
        der(0x31, der(0x31, ATTRIBUTE)),
        sequence(sequence(ATTRIBUTE)),
        sequence(der(0x31)),
        sequence(der(0x31, der(0x31, identifier(CN), der(UTF8, b"a")))),
        sequence(der(0x31, sequence(identifier(CN)))),
        sequence(der(0x31, sequence(identifier(CN), der(UTF8), der(UTF8)))),
        sequence(der(0x31, sequence(der(UTF8, b"\x55\x04\x03"), der(UTF8)))),
        sequence(der(0x31, sequence(der(0x06, b""), der(UTF8)))),
        sequence(der(0x31, sequence(der(0x06, b"\x55\x84"), der(UTF8)))),
        sequence(der(0x31, sequence(der(0x06, b"\x55\x80\x04\x03"), der(UTF8)))),
        # A length that DER writes otherwise, one without an end, and a tag of two bytes.
        sequence(der(0x31, sequence(identifier(CN), b"\x0c\x81\x01a"))),
        sequence(der(0x31, sequence(identifier(CN), b"\x0c\x82\x00\x80" + b"a" * 128))),
        sequence(der(0x31, sequence(identifier(CN), b"\x2c\x80\x0c\x01a\0\0"))),
        sequence(der(0x31, sequence(identifier(CN), b"\x1f\x21\x01a"))),
        sequence(der(0x31, sequence(identifier(CN), b"\x0c\x05a"))),
        sequence(der(0x31, sequence(identifier(CN), b"\x0c"))),
    ],
)
def test_a_subject_that_is_none_is_refused(whole: bytes) -> None:
    with pytest.raises(ValueError, match=r"^its? |^an attribute |^the type |^a part "):
        distinguished_name(in_certificate(whole))


WHOLE = certificate_in(file_of("odd"))


@given(end=st.integers(0, len(WHOLE) - 1))
def test_a_part_of_a_certificate_is_none(end: int) -> None:
    with pytest.raises(ValueError, match=r"^it "):
        distinguished_name(WHOLE[:end])


@given(data=st.binary(max_size=60), at=st.integers(0, 300), size=st.integers(0, 10))
def test_any_bytes_have_a_name_or_are_refused(data: bytes, at: int, size: int) -> None:
    for given_bytes in (data, WHOLE[:at] + data + WHOLE[at + size :]):
        with suppress(ValueError):
            distinguished_name(given_bytes)


def test_what_is_in_front_of_a_subject_may_be_anything() -> None:
    whole = to_be_signed(subject([*OF_ACME]), validity=b"\x04\x00", algorithm=b"\x05\x00")
    assert distinguished_name(sequence(whole)) == "OU=Data,O=Acme,C=DE"
