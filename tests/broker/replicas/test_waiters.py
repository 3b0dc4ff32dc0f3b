from functools import partial

from tidemark.broker.replicas.waiters import NO_COMMIT_WAITERS, NO_FETCH_WAITERS, FetchWaiters
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset


def test_waiters_are_answered_when_their_offset_is_committed_and_not_before() -> None:
    waiters, answered = NO_COMMIT_WAITERS, list[int]()
    for end in (5, 10, 15):
        waiters = waiters.joined(Offset(end), lambda error, end=end: answered.append(end))  # type: ignore[misc]  # a default argument binds `end`
    waiters.advance(Offset(4))
    assert answered == []
    waiters.advance(Offset(10))
    assert answered == [5, 10]
    assert len(waiters) == 1


def test_a_duplicate_waits_for_its_original_though_it_comes_later() -> None:
    waiters, answered = NO_COMMIT_WAITERS, list[str]()
    waiters = waiters.joined(Offset(5), lambda error: answered.append("original"))
    waiters = waiters.joined(Offset(10), lambda error: answered.append("next"))
    waiters = waiters.joined(Offset(5), lambda error: answered.append("duplicate"))
    waiters.advance(Offset(5))
    assert answered == ["original", "duplicate"]


def test_partitions_at_which_somebody_waits_share_nothing() -> None:
    one = NO_COMMIT_WAITERS.joined(Offset(5), lambda _: None)
    other = NO_COMMIT_WAITERS.joined(Offset(5), lambda _: None)
    assert (len(one), len(other), len(NO_COMMIT_WAITERS)) == (1, 1, 0)
    fetch = Fetch(FetchWaiters(), [], "one", answered=False)
    assert (len(NO_FETCH_WAITERS.joined(fetch)), len(NO_FETCH_WAITERS)) == (1, 0)


def test_all_waiters_are_failed_when_the_replica_closes() -> None:
    waiters, errors = NO_COMMIT_WAITERS, list[RequestError | None]()
    waiters = waiters.joined(Offset(5), errors.append)
    waiters = waiters.joined(Offset(9), errors.append)
    error = RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    waiters.fail_all(error)
    assert errors == [error, error]
    assert len(waiters) == 0


class Fetch:
    def __init__(self, waiters: FetchWaiters, log: list[str], name: str, *, answered: bool) -> None:
        self.waiters, self.log, self.name, self.answered = waiters, log, name, answered

    def look_again(self) -> None:
        self.log.append(self.name)
        if self.answered:
            self.waiters.discard(self)

    def answer_now(self) -> None:
        self.log.append(f"{self.name}, now")
        self.waiters.discard(self)


def test_a_fetch_that_is_answered_leaves_and_one_that_is_not_stays() -> None:
    waiters, log = FetchWaiters(), list[str]()
    make = partial(Fetch, waiters, log)
    waiters = waiters.joined(make("satisfied", answered=True))
    waiters = waiters.joined(make("wants more", answered=False))
    waiters.wake()
    waiters.wake()
    assert log == ["satisfied", "wants more", "wants more"]


def test_fetches_that_are_released_are_all_answered() -> None:
    waiters, log = FetchWaiters(), list[str]()
    waiters = waiters.joined(Fetch(waiters, log, "one", answered=False))
    waiters = waiters.joined(Fetch(waiters, log, "two", answered=False))
    waiters.release()
    assert log == ["one, now", "two, now"]
    assert len(waiters) == 0
