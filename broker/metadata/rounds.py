"""Changes of many topics at once: in rounds, each one batch of the metadata's log.

Other changes have their turn between two rounds. What is asked for by a deadline is told by then
what became of each: a round that has not begun by then never begins.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from tidemark.broker.metadata.metadata_leader import WAIT_SECONDS_MAX, WAIT_SECONDS_MIN
from tidemark.protocol.errors import ErrorCode, RequestError

D = TypeVar("D")
R = TypeVar("R")

TOPICS_AT_ONCE: Final = 25
"""With 200 topics of three replicas, a hundred at a time, another change waited for 2 to 3 s, and
with these for 1 to 2; all of them take as long."""
_ANSWERED_BY: Final = 0.9
"""Of the time that a client gives; the rest is for the answer's way, by another broker perhaps."""


def deadline_of(timeout_ms: int) -> float:
    """By when a request is to be answered, by trio's clock."""
    seconds = min(max(timeout_ms / 1000, WAIT_SECONDS_MIN), WAIT_SECONDS_MAX)
    return trio.current_time() + _ANSWERED_BY * seconds


async def in_rounds(
    decisions: Sequence[D],
    carry_out: Callable[[Sequence[D]], Awaitable[list[R | RequestError]]],
    settle: Callable[[list[R | RequestError]], Awaitable[list[R | RequestError]]],
    *,
    deadline: float,
) -> list[R | RequestError]:
    """What each came to. `carry_out` does one round; what it raises every one of it is told.

    `settle` waits until what came of it is done here: else what others change meanwhile would have
    to wait for all rounds there. At the deadline it is not waited for any more.
    """
    done = list[R | RequestError]()
    for first in range(0, len(decisions), TOPICS_AT_ONCE):
        some = decisions[first : first + TOPICS_AT_ONCE]
        if trio.current_time() >= deadline:
            done += [_not_begun()] * len(some)
            continue
        results: list[R | RequestError] = [_unknown_outcome()] * len(some)
        with trio.move_on_at(deadline):
            try:
                results = await carry_out(some)
            except RequestError as error:
                results = [error] * len(some)
            results = await settle(results)
        done += results
    return done


def _not_begun() -> RequestError:
    return RequestError(
        ErrorCode.REQUEST_TIMED_OUT,
        "the time was over before its turn came: nothing was done, and nothing will be",
    )


def _unknown_outcome() -> RequestError:
    return RequestError(
        ErrorCode.REQUEST_TIMED_OUT,
        "a majority did not confirm it in time; whether it was done, only looking will tell",
    )
