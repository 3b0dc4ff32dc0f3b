"""Java's properties, as far as a server.properties goes."""

from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.config.properties import parse_properties

WORDS = st.text(alphabet="abcXYZ.019_", min_size=1, max_size=8)


def test_names_and_values_are_parted_by_an_equals_sign_a_colon_or_a_space() -> None:
    assert parse_properties("a=1\nb:2\nc 3\nd = 4\n e : 5") == dict(
        zip("abcde", "12345", strict=True)
    )


def test_comments_and_empty_lines_say_nothing() -> None:
    assert parse_properties("# a=1\n\n! b=2\n   \nc=3") == {"c": "3"}


def test_a_backslash_at_the_end_joins_the_next_line() -> None:
    assert parse_properties("list=a,\\\n   b,\\\n   c\nd=1") == {"list": "a,b,c", "d": "1"}


def test_a_backslash_escapes_separators_and_characters() -> None:
    assert parse_properties(r"a\=b\:c=x\ty\u00e9\\") == {"a=b:c": "x\tyé\\"}


def test_the_last_of_a_name_counts_and_a_value_may_be_empty() -> None:
    assert parse_properties("a=1\na=2\nb=\nc") == {"a": "2", "b": "", "c": ""}


@given(st.dictionaries(WORDS, WORDS))
def test_plain_properties_are_read_back(properties: dict[str, str]) -> None:
    lines = [f"{name}={value}" for name, value in properties.items()]
    assert parse_properties("\n".join(lines)) == properties


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_properties(text)
