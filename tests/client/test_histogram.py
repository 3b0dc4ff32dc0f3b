"""A histogram says of its values what sorting them would, to within its precision."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.client.histogram import PRECISION, Histogram, end_of, slot_of

VALUES = st.integers(0, 1 << 45)

few = settings(max_examples=40)


def histogram_of(values: list[int]) -> Histogram:
    made = Histogram()
    for value in values:
        made.record(value)
    return made


@few
@given(value=VALUES)
def test_a_slot_holds_its_values_and_is_as_narrow_as_promised(value: int) -> None:
    slot = slot_of(value)
    begin = end_of(slot - 1) if slot else 0
    assert begin <= value < end_of(slot)
    assert end_of(slot) - begin <= max(1, begin * PRECISION)


@few
@given(
    values=st.lists(VALUES, min_size=1, max_size=300),
    percent=st.sampled_from([0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0]),
)
def test_a_percentile_is_that_of_the_sorted_values(values: list[int], percent: float) -> None:
    ordered = sorted(values)
    exact = next(v for n, v in enumerate(ordered, 1) if n >= percent / 100 * len(values) - 1e-9)
    found = histogram_of(values).percentile(percent)
    assert exact <= found <= max(exact, exact * (1 + PRECISION))


@few
@given(first=st.lists(VALUES), second=st.lists(VALUES))
def test_two_add_up_to_that_of_both(first: list[int], second: list[int]) -> None:
    total = histogram_of(first)
    total.add(histogram_of(second))
    assert total == histogram_of(first + second)


@few
@given(values=st.lists(VALUES))
def test_what_is_written_is_read_back(values: list[int]) -> None:
    made = histogram_of(values)
    assert Histogram.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_a_percentile_that_no_value_lies_above_is_not_told() -> None:
    told = dict(histogram_of(list(range(500))).percentiles())
    assert list(told) == [50.0, 90.0, 99.0]


def test_the_curve_ends_at_the_largest_value() -> None:
    assert list(histogram_of([5, 5, 1_000_003]).curve())[-1] == (1_000_003, 1.0)


def test_of_nothing_there_is_no_percentile() -> None:
    with pytest.raises(ValueError, match="no value"):
        Histogram().percentile(50.0)


def test_what_is_no_histogram_is_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        Histogram.from_json({"slots": []})
