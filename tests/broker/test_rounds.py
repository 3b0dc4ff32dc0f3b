"""Many changes at once: each is told what became of it, by the deadline."""

from collections.abc import Sequence

import trio
from trio.testing import MockClock

from tidemark.broker.metadata.rounds import TOPICS_AT_ONCE, deadline_of, in_rounds
from tidemark.protocol.errors import ErrorCode, RequestError

Result = int | RequestError


class Leader:
    """Takes a second for each round, and another until what it changed is open."""

    def __init__(self) -> None:
        self.rounds: list[int] = []
        self.settled: list[int] = []

    async def carry_out(self, some: Sequence[int]) -> list[Result]:
        await trio.sleep(1)
        self.rounds.append(len(some))
        return [100 + each for each in some]

    async def settle(self, results: list[Result]) -> list[Result]:
        await trio.sleep(1)
        self.settled.append(len(results))
        return results


async def refuse(some: Sequence[int]) -> list[Result]:
    await trio.sleep(1)
    raise RequestError(ErrorCode.NOT_CONTROLLER, f"{len(some)} too many")


def kinds(results: Sequence[Result]) -> list[str]:
    """One letter for each: done, unknown, not begun."""
    found = []
    for each in results:
        if isinstance(each, int):
            found.append("d")
        else:
            assert each.code is ErrorCode.REQUEST_TIMED_OUT
            assert each.message is not None
            found.append("n" if "nothing will be" in each.message else "u")
    return found


async def test_rounds_follow_each_other_once_what_they_changed_is_open(
    autojump_clock: MockClock,
) -> None:
    leader, count = Leader(), 2 * TOPICS_AT_ONCE + 1
    results = await in_rounds(range(count), leader.carry_out, leader.settle, deadline=100)
    assert results == [100 + each for each in range(count)]
    assert leader.rounds == leader.settled == [TOPICS_AT_ONCE, TOPICS_AT_ONCE, 1]
    assert trio.current_time() == 6


async def test_at_the_deadline_each_is_told_what_became_of_it(autojump_clock: MockClock) -> None:
    leader, size = Leader(), TOPICS_AT_ONCE
    results = await in_rounds(range(3 * size), leader.carry_out, leader.settle, deadline=2.5)
    assert kinds(results) == ["d"] * size + ["u"] * size + ["n"] * size
    assert leader.rounds == [size], "what has not begun never does"
    assert trio.current_time() == 2.5


async def test_what_is_done_is_not_taken_back_because_it_is_not_open_in_time(
    autojump_clock: MockClock,
) -> None:
    leader = Leader()
    results = await in_rounds(range(3), leader.carry_out, leader.settle, deadline=1.5)
    assert results == [100, 101, 102]


async def test_a_round_that_is_refused_does_not_keep_the_next_from_its_turn(
    autojump_clock: MockClock,
) -> None:
    leader = Leader()
    results = await in_rounds(range(TOPICS_AT_ONCE + 1), refuse, leader.settle, deadline=100)
    messages = {each.message for each in results if isinstance(each, RequestError)}
    assert messages == {f"{TOPICS_AT_ONCE} too many", "1 too many"}


async def test_an_answer_leaves_before_who_asked_gives_up(autojump_clock: MockClock) -> None:
    seconds = {timeout_ms: deadline_of(timeout_ms) for timeout_ms in (0, 30_000, 2**31 - 1)}
    assert all(5 * 0.8 < each < 60 for each in seconds.values())
    assert 25 < seconds[30_000] < 30
