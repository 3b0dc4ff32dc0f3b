"""rpk's percent formats, token by token."""

import time
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.formats.examples import FULL, NULLS, ORDERS, record
from tidemark.cli.formats.formatter import FormatError
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.rpk import compile_rpk


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        ("%t %p %o %e", b"orders 3 343 7"),
        ("%k=%v", b"key=value"),
        ("%T %K %V %H", b"6 3 5 2"),
        ("%x %y", b"791 1"),
        ("%[ %| %]", b"40 90 100"),
        ("%d", b"1700000000123"),
        ("%%%{%}", b"%{}"),
        (r"\t\n\r\\\x00\x7f", b"\t\n\r\\\x00\x7f"),
        ("naïve ✓", "naïve ✓".encode()),
        ("%o%%d", b"343%d"),
        ("100%% %v", b"100% value"),
        ("\udcff%v", b"\xffvalue"),  # an argument that is not UTF-8
    ],
)
def test_tokens_and_escapes(layout: str, printed: bytes) -> None:
    assert compile_rpk(layout)(FULL, ORDERS) == printed


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        ("%T{ascii} %T{number}", b"6 6"),
        ("%o{hex64} %o{hex32} %o{hex16} %o{hex8} %o{hex4} %o{hex}",
         b"0000000000000157 00000157 0157 57 7 157"),
        ("%K{big64}%K{big32}%K{big16}%K{big8}%K{byte}",
         b"\0\0\0\0\0\0\0\3\0\0\0\3\0\3\3\3"),
        ("%K{little64}%K{little32}%K{little16}%K{little8}",
         b"\3\0\0\0\0\0\0\0\3\0\0\0\3\0\3"),
        ("%K{bool} %d{hex}", b"true 18bcfe5687b"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_their_modifier_says(layout: str, printed: bytes) -> None:
    assert compile_rpk(layout)(FULL, ORDERS) == printed


def test_a_negative_number_is_in_twos_complement_where_it_is_not_decimal() -> None:
    assert compile_rpk("%d %d{hex} %d{big16} %d{hex8}")(NULLS, ORDERS) == (
        b"-1 ffffffffffffffff \xff\xff ff"
    )


@pytest.mark.parametrize(
    ("layout", "value", "printed"),
    [
        ("%v{hex}", b"\x00\xffz", b"00ff7a"),
        ("%v{base64}", b"value", b"dmFsdWU="),
        ("%v{base64raw}", b"value", b"dmFsdWU"),
        ("%v{unpack[>Iq]}", b"\0\0\1\0" + b"\xff" * 8, b"256-1"),
        ("%v{unpack[<hH>h]}", b"\1\0\1\0\0\1", b"111"),
        ("%v{unpack[iIqQ]}", b"\1\0\0\0" * 2 + b"\2\0\0\0\0\0\0\0" * 2, b"1122"),
        ("%v{unpack[bB]}", b"\xff\xff", b"-1255"),
        ("%v{unpack{c.xs}}", b"abcde", b"abcde"),
        ("%v{unpack##h$##}", b"\1\0", b"1"),
        ("%v{unpack[h$]}", b"\1\0\1", b"1(1 bytes left)"),
        ("%v{unpack[I]}", b"\1", b"(have 1 bytes, need 4)"),
        ("%v{unpack[c]}", b"", b"(no bytes left)"),
    ],
)
def test_bytes_are_written_as_their_modifier_says(
    layout: str, value: bytes, printed: bytes
) -> None:
    assert compile_rpk(layout)(record(value), ORDERS) == printed


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        ("%d{strftime[%F]}", b"2023-11-14"),
        ("%d{strftime[[%F %T]]}", b"2023-11-14 22:13:20"),
        ("%d{strftime### [%F] ###}", b" [2023-11-14] "),
        ("%d{go##2006-01-02T15:04:05.000Z07:00##}", b"2023-11-14T22:13:20.123Z"),
        ("%d{go[Mon Jan _2 3:04:05.999999PM MST 06]}", b"Tue Nov 14 10:13:20.123PM UTC 23"),
        ("%d{go[Monday, January 2 1 100%]}", b"Tuesday, November 14 11 1100%"),
    ],
)
def test_times_are_written_in_utc_as_their_modifier_says(layout: str, printed: bytes) -> None:
    assert compile_rpk(layout)(FULL, ORDERS) == printed


def test_a_time_beyond_the_calendar_is_written_as_a_number() -> None:
    beyond = FULL._replace(timestamp_ms=10**17)
    assert compile_rpk("%d{strftime[%F]}")(beyond, ORDERS) == b"100000000000000000"


@pytest.mark.parametrize(
    ("layout", "printed"),
    [
        ("%h{%k=%v,}", b"H1=V1,h2=,"),
        ("%h{ %K{ascii} %k %v{hex} %V }", b" 2 H1 5631 2  2 h2  0 "),
        ("%h{%{%k%}}", b"{H1}{h2}"),
        (r"%h{%k\n}%k", b"H1\nh2\nkey"),
    ],
)
def test_headers_are_written_each_by_the_format_inside(layout: str, printed: bytes) -> None:
    assert compile_rpk(layout)(FULL, ORDERS) == printed


def test_attributes_are_words_or_numbers() -> None:
    layout = (
        "%a{compression} %a{compression;number} %a{compression;hex8} %a{timestamp-type} "
        "%a{transactional-bit} %a{transactional-bit;bool} %a{control-bit} %a{control-bit;bool}"
    )
    assert compile_rpk(layout)(FULL, ORDERS) == b"lz4 3 03 0 1 true 0 false"


def test_null_keys_and_values_are_nothing_of_length_zero() -> None:
    assert compile_rpk("[%k|%K|%v|%V|%v{hex}|%H|%h{%k}]")(NULLS, ORDERS) == b"[|0||0||0|]"


def test_the_counter_counts_what_this_format_has_printed() -> None:
    write = compile_rpk("%i ")
    assert b"".join(write(FULL, ORDERS) for _ in range(3)) == b"1 2 3 "
    assert compile_rpk("%i{hex8}")(FULL, ORDERS) == b"01"


@pytest.mark.parametrize(
    ("layout", "complaint"),
    [
        ("%", "cannot end in %"),
        ("%z", "%z is not a token"),
        ("%h", "needs the format of one header"),
        ("%h{%o}", "%o is not a token of a header"),
        ("%h{%k", "not closed"),
        ("%v{rot13}", "not a way to write bytes"),
        ("%o{rot13}", "not a way to write a number"),
        ("%d{never}", "not a way to write a number"),
        ("%d{strftime}", "needs an argument"),
        ("%d{strftime[%F}", "does not end in"),
        ("%v{unpack[w]}", "'w'"),
        ("%v{unpack[sI]}", "nothing can follow 's'"),
        ("%a", "%a needs one of"),
        ("%a{colour}", "%a needs one of"),
        (r"\q", "not an escape"),
        (r"\x1", "not an escape"),
        ("\\", "not an escape"),
    ],
)
def test_what_is_not_a_format_is_refused_when_it_is_read(layout: str, complaint: str) -> None:
    with pytest.raises(FormatError, match=complaint):
        compile_rpk(layout)


@given(layout=st.text(alphabet="%{}[]|\\xtkKvVhHpoedyia;<>Isgo 0123strftime✓'\"", max_size=30))
def test_any_text_is_a_format_or_an_error(layout: str) -> None:
    try:
        write = compile_rpk(layout)
    except FormatError:
        return
    assert isinstance(write(FULL, ORDERS), bytes)
    assert isinstance(write(NULLS, ORDERS), bytes)


def test_json_alone_is_a_line_of_json() -> None:
    assert compile_rpk("json") is format_json


@given(text=st.text().filter(lambda text: text != "json"))
def test_literal_text_comes_out_as_it_is(text: str) -> None:
    escaped = text.replace("\\", r"\\").replace("%", "%%")
    assert compile_rpk(escaped)(FULL, ORDERS) == text.encode()


def test_a_simple_format_costs_about_a_microsecond_a_record() -> None:
    write, count = compile_rpk(r"%t %p %o %k=%v\n"), 10_000
    seconds = min(
        timeit.repeat(
            lambda: [write(FULL, ORDERS) for _ in range(count)],
            timer=time.process_time,
            number=1,
            repeat=5,
        )
    )
    # Half a microsecond, measured; the bound is for a machine that is busy with other tests.
    assert seconds / count < 5e-6
