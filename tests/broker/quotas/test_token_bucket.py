"""Whoever is held back as long as it is told stays within its rate."""

from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.quotas.token_bucket import TokenBucket

AMOUNTS = st.lists(st.tuples(st.floats(0, 1_000), st.floats(0, 20)), min_size=1, max_size=30)


@given(steps=AMOUNTS, rate=st.floats(1, 1_000), burst=st.floats(0, 10))
def test_who_waits_as_told_has_had_the_rate_and_one_burst(
    steps: list[tuple[float, float]], rate: float, burst: float
) -> None:
    now, taken = 0.0, 0.0
    bucket = TokenBucket(rate, burst, now)
    for amount, pause in steps:
        taken += amount
        now += bucket.take(amount, now) + pause
        assert taken <= rate * (now + burst) * 1.000001 + 0.001


@given(amount=st.floats(0, 1_000), rate=st.floats(1, 1_000))
def test_the_wait_is_as_long_as_the_debt_takes(amount: float, rate: float) -> None:
    bucket = TokenBucket(rate, 0, 0.0)
    wait = bucket.take(amount, 0.0)
    assert wait == amount / rate
    assert bucket.debt_seconds(wait + 0.001) == 0


def test_a_burst_costs_nothing_once() -> None:
    bucket = TokenBucket(10, 2, 0.0)
    assert bucket.take(20, 0.0) == 0
    assert not bucket.is_full(1.0)
    assert bucket.take(10, 1.0) == 0
    assert bucket.take(5, 1.0) == 0.5
    assert bucket.is_full(100.0)
    assert bucket.take(30, 100.0) == 1
