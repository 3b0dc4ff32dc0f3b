"""Lines into records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.cli.formats.json_lines import InputError, NewRecord
from tidemark.cli.formats.lines import LineFormat, LineSplitter, parse_header


@given(
    stream=st.lists(st.sampled_from([b"a", b";", b"|", b"bb", b""]), max_size=30).map(b"".join),
    delimiter=st.sampled_from([b";", b";|", b";;"]),
    cuts=st.lists(st.integers(1, 4)),
)
def test_any_split_of_the_stream_gives_the_same_lines(
    stream: bytes, delimiter: bytes, cuts: list[int]
) -> None:
    expected = stream.split(delimiter)
    if not expected[-1]:
        expected.pop()
    splitter, got = LineSplitter(delimiter, line_bytes_max=1000), list[bytes]()
    for cut in cuts:
        got += splitter.feed(stream[:cut])
        stream = stream[cut:]
    assert got + splitter.feed(stream) + splitter.finish() == expected


def test_an_empty_line_is_a_line() -> None:
    splitter = LineSplitter(b"\n", line_bytes_max=10)
    assert splitter.feed(b"a\n\n\nb\r\n") == [b"a", b"", b"", b"b\r"]
    assert splitter.finish() == []


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    splitter = LineSplitter(b"\n", line_bytes_max=10)
    assert splitter.feed(b"x" * 10) == []
    with pytest.raises(InputError, match="longer than 10 bytes"):
        splitter.feed(b"x")


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"k:v", b"k", b"v"),
        (b"none", None, b"none"),
        (b":v", b"", b"v"),
        (b"k:", b"k", b""),
        (b"k:v:w", b"k", b"v:w"),
    ],
)
def test_the_key_stands_before_the_first_delimiter(
    line: bytes, key: bytes | None, value: bytes
) -> None:
    assert LineFormat(key_delimiter=b":").parse(line) == NewRecord(key=key, value=value)


def test_a_fixed_key_is_for_lines_without_one() -> None:
    lines = LineFormat(key=b"fixed", key_delimiter=b":", headers=[("a", b"1")], partition=3)
    assert lines.parse(b"k:v").key == b"k"
    assert lines.parse(b"v") == NewRecord(
        key=b"fixed", value=b"v", headers=[("a", b"1")], partition=3
    )


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [(b"k:", b"k", None), (b":v", None, b"v"), (b"", None, None), (b"k:v", b"k", b"v")],
)
def test_empty_can_mean_null(line: bytes, key: bytes | None, value: bytes | None) -> None:
    parsed = LineFormat(key_delimiter=b":", empty_is_null=True).parse(line)
    assert (parsed.key, parsed.value) == (key, value)


def test_headers_are_named_with_or_without_a_value() -> None:
    assert parse_header("trace=a=b") == ("trace", b"a=b")
    assert parse_header("trace=") == ("trace", b"")
    assert parse_header("trace") == ("trace", None)
    with pytest.raises(InputError, match="not a header"):
        parse_header("=x")
    with pytest.raises(InputError, match="a header's name is text"):
        parse_header("a\udcff=x")
