"""kcat's format strings. The expected bytes are what kcat 1.7.1 itself printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.formats.examples import FULL, NULLS, ORDERS, record
from tidemark.cli.formats.formatter import FormatError
from tidemark.cli.formats.kcat import compile_kcat


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        ("%s|%S|%k|%K", b"value|5|key|3"),
        ("%t [%p] at %o", b"orders [3] at 343"),
        ("%T", b"1700000000123"),
        ("%R", b"\0\0\0\5"),
        ("%h", b"H1=V1,h2=NULL"),
        ("100%%", b"100%"),
        (r"%s\t%k\r\n", b"value\tkey\r\n"),
        ("\udcff%s\\\udcfe", b"\xffvalue\xfe"),  # an argument that is not UTF-8
    ],
)
def test_tokens(layout: str, printed: bytes) -> None:
    assert compile_kcat(layout)(FULL, ORDERS) == printed


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        (r"\x41\x4a1Z", b"A\xa1Z"),
        (r"nul\x00after", b"nul\xafter"),
        (r"\101|\0101|\65", b"e|A|A"),
        (r"\q\\n", b"q\\n"),
    ],
)
def test_escapes_take_every_digit_that_follows_and_any_character(
    layout: str, printed: bytes
) -> None:
    assert compile_kcat(layout)(FULL, ORDERS) == printed


def test_null_has_length_minus_one_and_empty_has_length_zero() -> None:
    assert compile_kcat("%s|%S|%k|%K|%R")(NULLS, ORDERS) == b"|-1||-1|\xff\xff\xff\xff"
    assert compile_kcat("%s|%S|%k|%K")(record(b"", b""), ORDERS) == b"|0||0"


def test_null_and_empty_can_be_given_a_name() -> None:
    named = compile_kcat("%s|%k", null=b"NULL")
    assert named(NULLS, ORDERS) == b"NULL|NULL"
    assert named(record(b"", b""), ORDERS) == b"NULL|NULL"
    assert named(FULL, ORDERS) == b"value|key"


@pytest.mark.parametrize("layout", ["%", "a%", "%z", "%v", "%\n"])
def test_what_kcat_does_not_have_is_refused(layout: str) -> None:
    with pytest.raises(FormatError, match="not a token of kcat's"):
        compile_kcat(layout)


@given(layout=st.text(alphabet="%\\xsSRkKThtpo019af\n '\"✓", max_size=30))
def test_any_text_is_a_format_or_an_error(layout: str) -> None:
    try:
        write = compile_kcat(layout)
    except FormatError:
        return
    assert isinstance(write(FULL, ORDERS), bytes)
