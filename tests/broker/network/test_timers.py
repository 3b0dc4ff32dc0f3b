from collections.abc import Callable

import trio
from trio.testing import MockClock

from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn


async def test_timers_fire_in_the_order_of_their_deadlines(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    timers, fired = Timers(), list[tuple[str, float]]()
    nursery.start_soon(timers.run)
    timers.after(3, lambda: fired.append(("late", trio.current_time())))
    timers.after(1, lambda: fired.append(("early", trio.current_time())))
    await trio.sleep(10)
    assert fired == [("early", 1), ("late", 3)]
    assert len(timers) == 0


async def test_a_nearer_deadline_wakes_the_sleeping_task(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    timers, fired = Timers(), list[float]()
    nursery.start_soon(timers.run)
    timers.after(100, lambda: fired.append(trio.current_time()))
    await trio.sleep(1)
    timers.after(1, lambda: fired.append(trio.current_time()))
    await trio.sleep(5)
    assert fired == [2]


async def test_a_cancelled_timer_never_fires(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    timers, fired = Timers(), list[str]()
    nursery.start_soon(timers.run)
    cancelled = timers.after(1, lambda: fired.append("cancelled"))
    timers.after(2, lambda: fired.append("kept"))
    cancelled.cancel()
    cancelled.cancel()
    await trio.sleep(5)
    assert fired == ["kept"]


async def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    for _ in range(100_000):
        timers.after(30, lambda: None).cancel()
    assert len(timers) == 0
    assert len(timers._heap) < 3_000


async def test_a_callback_may_set_another_timer(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    timers, fired = Timers(), list[float]()

    def again() -> None:
        fired.append(trio.current_time())
        if len(fired) < 3:
            timers.after(1, again)

    nursery.start_soon(timers.run)
    timers.after(1, again)
    await trio.sleep(10)
    assert fired == [1, 2, 3]


class CountingTurn(Turn):
    """Counts how often it is begun."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def run(self, callback: Callable[[], None]) -> None:
        self.runs += 1
        super().run(callback)


async def test_a_timer_that_is_moved_goes_off_once_and_wakes_nobody_at_its_old_time(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    turn = CountingTurn()
    timers, fired = Timers(turn), list[float]()
    nursery.start_soon(timers.run)
    timer = timers.after(2, lambda: fired.append(trio.current_time()))
    await trio.sleep(1)
    later = timers.move(timer, 4)
    await trio.sleep(2)
    assert (turn.runs, fired, len(timers)) == (0, [], 1)
    timers.move(later, 3.5)
    await trio.sleep(5)
    assert (turn.runs, fired) == (1, [3.5])
