"""What is shown of a plan of leaders, and what it may be asked for."""

import pytest

from tests.partitions.balancing.clusters import (
    broker,
    brokers,
    group,
)
from tests.partitions.balancing.planning import (
    lopsided,
    planned,
    table,
)
from tidemark.partitions.balancing.explain import Table, explain
from tidemark.partitions.balancing.settings import Settings, Weights

# Tables


def test_refusals_are_a_table() -> None:
    groups = [*lopsided(moved_ago_ms=20_000), group("u-0", (1, 3))]
    made = planned([*brokers(2), broker(3, is_alive=False)], groups)
    assert table(made, "Not moved") == (
        "reason     to  groups  such as  why not\n"
        "dead       3   1                broker 3 is not alive\n"
        "cool-down  2   4       t-0      from broker 1 to 2 would gain 10.9: its leader changed "
        "20 s ago and is let be for 60 s"
    )


def test_moves_are_a_table() -> None:
    made = planned(brokers(2), lopsided(), Settings())
    assert table(made, "Moves") == (
        "step  partition  from  to  gain  why\n"
        "1     t-0        1     2   8.94  broker 1 leads 4, broker 2 0; "
        "of t broker 1 leads 4, broker 2 0\n"
        "2     t-3        1     2   2.94  broker 1 leads 3, broker 2 1; "
        "of t broker 1 leads 3, broker 2 1"
    )


def test_tables_without_rows_are_left_out() -> None:
    made = planned(brokers(2), [])
    assert [each.title for each in explain(made)] == ["Unevenness", "Brokers"]
    assert Table("t", ("a",), ()).lines() == ["a"]


# Settings


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"hysteresis": 1.0}, "hysteresis is 1.0: it is a fraction"),
        ({"quiet_bytes_per_second": 0.0}, "quiet_bytes_per_second is 0.0: it must be above 0"),
        ({"cool_down_ms": -1}, "cool_down_ms is -1: it cannot be negative"),
        ({"moves_in_flight_max": 1}, "moves_in_flight_max is 1: two leaders may have to"),
        ({"broker_moves_in_flight_max": 0}, "broker_moves_in_flight_max is 0: two leaders"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings(**wrong)  # type: ignore[arg-type]  # of several types, by name


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"hysteresis is -1.*; cool_down_ms is -2"):
        Settings(hysteresis=-1, cool_down_ms=-2)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_weight_is_a_number_from_0(value: float) -> None:
    with pytest.raises(ValueError, match="weight topic is"):
        Weights(topic=value)


def test_weights_that_are_all_0_are_refused() -> None:
    with pytest.raises(ValueError, match="all weights are 0"):
        Weights(count=0, topic=0, rate=0, preferred=0)
