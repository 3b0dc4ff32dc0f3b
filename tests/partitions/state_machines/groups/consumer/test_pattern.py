"""Topics named by a regular expression: as Python's own `re` would have it, and never slow."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.groups.consumer.pattern import (
    SETS_KEPT_MAX,
    Pattern,
    check_pattern,
)
from tidemark.protocol.errors import ErrorCode, RequestError

LETTERS = "ab1_.-"
names = st.text(alphabet=LETTERS, max_size=8)

atoms = st.sampled_from(
    ["a", "b", "1", "_", r"\.", ".", "[ab]", "[^a]", "[a-b1]", r"\d", r"\w", r"\W", r"[\d_]", "-"]
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"])).map(
            lambda each: f"(?:{each[0]}){each[1]}"
        ),
        inner.map("^{}".format),
        inner.map("{}$".format),
    ),
    max_leaves=8,
)


@given(text=expressions, name=names)
def test_what_matches_is_what_python_says(text: str, name: str) -> None:
    assert Pattern(text).matches(name) == bool(re.fullmatch(text, name)), text


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("orders.*", ["orders", "orders-eu"], ["my-orders", ""]),
        ("^orders$", ["orders"], ["orders2"]),
        ("(eu|us)[.]orders", ["eu.orders"], ["eu-orders", "orders"]),
        ("[[:alpha:]_]+", ["a_b"], ["a1", ""]),
        (r"a{,2}", [], ["a", "aa"]),
        ("", [""], ["a"]),
        ("a**?", None, None),
        ("x{3}", ["xxx"], ["xx"]),
        (r"\Aorders\z", ["orders"], ["orders1"]),
        ("é", [], ["e"]),
        ("[]a]+", ["a"], ["b"]),
        (r"[+-\.]", ["-", "."], ["d", "1"]),
        ("(a*)*b", ["aab", "b"], ["aa"]),
    ],
)
def test_what_a_pattern_means(
    text: str, matching: list[str] | None, others: list[str] | None
) -> None:
    if matching is None or others is None:
        with pytest.raises(RequestError):
            check_pattern(text)
        return
    pattern = Pattern(text)
    assert [name for name in (*matching, *others) if pattern.matches(name)] == matching


@pytest.mark.parametrize(
    "text",
    ["(", ")", "a)", "[", "[a", "*", "a|*", "(?=a)", "(?i)a", r"\1", r"\q", "\\", "[b-a]",
     r"[+-\d]", "[[:no:]]", "a{2,1}", "a{1001}", "(" * 51 + ")" * 51, "a" * 1001, "(a{100}){100}",
     "((a{100}){100}){100}"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        check_pattern(text)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert ": at " in str(refused.value.message) or "it " in str(refused.value.message)


@given(text=st.text(alphabet=r"ab()[]{}*+?|\^$.,12-:", max_size=30), name=names)
def test_whatever_is_written_is_a_pattern_or_refused(text: str, name: str) -> None:
    with suppress(RequestError):
        Pattern(text).matches(name)


def test_what_keeps_others_busy_for_ever_is_done_in_a_moment() -> None:
    started = time.process_time()
    assert not Pattern("(a|a)*(a|a)*(a|aa)+b").matches("a" * 249)
    assert not Pattern("(.*a){12}").matches("b" * 249)
    assert time.process_time() - started < 5


def test_names_are_looked_at_once() -> None:
    pattern = Pattern("orders-.*")
    pattern.look_at(["orders-1", "clicks"], 1)
    pattern.look_at([], 1)
    assert pattern.matching == {"orders-1"}, "the topics are those of the last time"
    pattern.look_at(["orders-2", "orders-1"], 2)
    assert pattern.matching == {"orders-1", "orders-2"}
    for number in range(2 * SETS_KEPT_MAX):
        pattern.matches(f"orders-{number}")
    assert len(pattern._next) <= SETS_KEPT_MAX
