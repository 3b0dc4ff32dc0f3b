"""What became of wishes: as it is known on every broker, and where nobody says it in time."""

import trio
from trio.testing import MockClock

from tests.broker.moves.cluster import (
    ID,
    TOPIC_ID,
    TWO,
    Clock,
    move,
    open_cluster,
    propose,
    strike,
    wish,
)
from tests.broker.moves.cluster import outcome as outcome_of
from tidemark.broker.moves.outcomes import REMEMBERED, MoveOutcomes, Wish
from tidemark.broker.moves.sweeping import GRACE_MS, SWEEP_SECONDS, keep_swept, overdue
from tidemark.partitions.state_machines.cluster_commands import DeleteTopic
from tidemark.partitions.state_machines.cluster_values import LeaderMove, MoveOutcome


def of(move: LeaderMove) -> Wish:
    return Wish(move.id, move.target, move.deadline_ms)


async def test_who_waits_hears_the_first_word_of_several(autojump_clock: MockClock) -> None:
    cluster = await open_cluster()
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    wished = move()
    await wish(cluster, wished)
    heard = list[MoveOutcome | None]()

    async def wait() -> None:
        heard.append(await outcomes.wait(of(wished)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        assert heard == []
        first = outcome_of(wished, attempts=2)
        await strike(cluster, first)
    await strike(cluster, outcome_of(wished, "a late word"))
    assert heard == [first]
    assert await outcomes.wait(of(wished)) == first


async def test_a_wish_that_went_with_its_topic_has_no_outcome(autojump_clock: MockClock) -> None:
    cluster = await open_cluster()
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    wished = move()
    await wish(cluster, wished)
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            assert await outcomes.wait(of(wished)) is None

        nursery.start_soon(wait)
        await trio.sleep(1)
        await propose(cluster, lambda version: DeleteTopic(at_version=version, id=TOPIC_ID))


async def test_the_newest_wish_is_the_open_one_or_the_last_that_ended() -> None:
    cluster = await open_cluster()
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    assert outcomes.newest(ID) is None
    for seconds in (10, 20):
        wished = move(seconds=seconds)
        await wish(cluster, wished)
        assert outcomes.newest(ID) == of(wished)
        await strike(cluster, outcome_of(wished))
        assert outcomes.newest(ID) == of(wished)


async def test_no_more_are_remembered_than_there_is_room_for() -> None:
    cluster = await open_cluster()
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    first = outcome_of(move(seconds=0))
    await strike(cluster, first)
    many = [outcome_of(move(seconds=each)) for each in range(1, REMEMBERED + 1)]
    await strike(cluster, *many)
    assert outcomes.newest(ID) == Wish(ID, TWO, many[-1].deadline_ms)
    assert await outcomes.wait(Wish(ID, TWO, first.deadline_ms)) is None
    assert await outcomes.wait(Wish(ID, TWO, many[0].deadline_ms)) == many[0]


async def test_a_wish_that_nobody_answers_for_is_struck_after_its_deadline(
    autojump_clock: MockClock,
) -> None:
    cluster = await open_cluster()
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    wished = move(seconds=5)
    await wish(cluster, wished)
    last = wished.deadline_ms + GRACE_MS
    assert list(overdue(cluster.state, last - 1)) == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_swept, cluster, Clock())
        await trio.sleep(5 + GRACE_MS / 1000 - SWEEP_SECONDS)
        assert cluster.state.wishes.moves
        await trio.sleep(3 * SWEEP_SECONDS)
        assert not cluster.state.wishes.moves
        nursery.cancel_scope.cancel()
    struck = await outcomes.wait(of(wished))
    assert struck is not None
    assert (struck.failure or "").startswith("not by its deadline")
