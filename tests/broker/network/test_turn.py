import pytest
import trio
from trio.testing import MockClock

from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn


def test_what_is_put_off_runs_once_the_turn_is_over_in_order() -> None:
    turn, seen = Turn(), list[str]()

    def work() -> None:
        turn.after(lambda: seen.append("after 1"))
        turn.after(lambda: seen.append("after 2"))
        seen.append("work")

    turn.run(work)
    assert seen == ["work", "after 1", "after 2"]


def test_outside_a_turn_nothing_is_put_off() -> None:
    seen = list[str]()
    Turn().after(lambda: seen.append("now"))
    assert seen == ["now"]


def test_a_turn_within_a_turn_is_the_same_turn() -> None:
    turn, seen = Turn(), list[str]()

    def inner() -> None:
        turn.after(lambda: seen.append("after"))

    def outer() -> None:
        turn.run(inner)
        seen.append("outer goes on")

    turn.run(outer)
    assert seen == ["outer goes on", "after"]


def test_what_is_put_off_while_finishing_is_still_done_in_this_turn() -> None:
    turn, seen = Turn(), list[str]()
    turn.run(lambda: turn.after(lambda: turn.after(lambda: seen.append("second round"))))
    assert seen == ["second round"]
    assert not turn.is_open


def test_what_puts_itself_off_for_ever_goes_on_in_the_next_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turn, rounds, seen = Turn(), 0, list[str]()

    def again() -> None:
        nonlocal rounds
        rounds += 1
        if rounds < 15_000:
            turn.after(again)

    turn.last(lambda: None)
    turn.run(lambda: turn.after(again))
    assert turn.is_behind
    assert not turn.is_open
    assert "test_what_puts_itself_off_for_ever" in caplog.text
    turn.run(lambda: turn.last(lambda: seen.append("last")))
    assert (rounds, seen) == (15_000, ["last"])
    assert not turn.is_behind


def test_the_last_things_come_when_nothing_is_left_of_what_was_put_off() -> None:
    turn, seen = Turn(), list[str]()

    def work() -> None:
        turn.last(lambda: seen.append("last"))
        turn.after(lambda: turn.after(lambda: seen.append("second round")))

    turn.run(work)
    turn.last(lambda: seen.append("outside of turns"))
    assert seen == ["second round", "last", "outside of turns"]


def test_what_another_thread_tells_is_heard_first_and_in_its_order() -> None:
    turn, seen = Turn(), list[str]()
    for number in (1, 2):
        turn.tell(lambda number=number: seen.append(f"told {number}"))  # type: ignore[misc]
    assert seen == []
    turn.run(lambda: turn.after(lambda: seen.append("after")))
    turn.run(lambda: seen.append("another turn"))
    assert seen == ["told 1", "told 2", "after", "another turn"]


def test_what_is_told_is_a_turn_of_its_own_if_none_comes() -> None:
    turn, seen = Turn(), list[bool]()
    turn.tell(lambda: seen.append(turn.is_open))
    turn.hear()
    turn.hear()
    assert seen == [True]


def test_who_has_turns_begin_is_woken_by_what_is_told_and_by_nothing_afterwards() -> None:
    turn, woken, seen = Turn(), list[int](), list[str]()
    is_woken = [turn.tell(lambda: seen.append("by who tells"))]
    with turn.woken_by(lambda: woken.append(len(seen))):
        is_woken.append(turn.tell(lambda: seen.append("in the block")))
        turn.hear()
        is_woken.append(turn.tell(lambda: seen.append("at its end")))
    is_woken.append(turn.tell(lambda: seen.append("too late")))
    assert seen == ["by who tells", "in the block", "at its end"]
    assert (is_woken, woken) == ([False, True, True, False], [0, 2])


def test_a_held_turn_does_what_it_is_told_and_keeps_back_what_was_put_off() -> None:
    turn, done = Turn(), list[str]()

    def both() -> None:
        done.append("now")
        turn.after(lambda: done.append("at the end"))

    turn.hold()
    turn.run(both)
    turn.after(lambda: done.append("outside of turns"))
    assert done == ["now"]
    turn.release()
    assert done == ["now", "at the end", "outside of turns"]
    turn.run(both)
    assert done[3:] == ["now", "at the end"]


async def test_timers_of_a_held_turn_fire_when_it_is_released(autojump_clock: MockClock) -> None:
    turn, fired = Turn(), list[float]()
    timers = Timers(turn)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timers.after(1, lambda: fired.append(trio.current_time()))
        turn.hold()
        await trio.sleep(5)
        assert not fired
        turn.release()
        await trio.sleep(1)
        assert fired == [5]
        nursery.cancel_scope.cancel()
