"""Looks are taken together, however their tasks began."""

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tidemark.broker.looks import next_look


async def test_tasks_that_began_at_any_time_look_at_the_same_moments(
    autojump_clock: MockClock,
) -> None:
    looks: list[float] = []

    async def look(began_after: float, period_seconds: float) -> None:
        await trio.sleep(began_after)
        while True:
            await trio.sleep_until(next_look(period_seconds))
            looks.append(trio.current_time())

    with trio.move_on_after(10.1):
        async with trio.open_nursery() as tasks:
            tasks.start_soon(look, 0.1, 0.5)
            tasks.start_soon(look, 0.27, 0.5)
            tasks.start_soon(look, 0.33, 1.0)
    assert len(looks) == 20 + 19 + 10
    assert set(looks) == {number / 2 for number in range(1, 21)}


@given(now=st.floats(0, 1e6), period_seconds=st.sampled_from([0.05, 0.25, 0.5, 1.0]))
def test_a_look_is_never_much_sooner_or_later_than_asked_for(
    now: float, period_seconds: float
) -> None:
    async def ask() -> float:
        return next_look(period_seconds) - trio.current_time()

    clock = MockClock()
    clock.jump(now)
    waits = trio.run(ask, clock=clock)
    assert 0.499 * period_seconds <= waits <= 1.501 * period_seconds
