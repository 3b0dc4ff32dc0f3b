"""What a broker makes of the wishes about the partitions that it leads."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import MockClock

from tests.broker.moves.cluster import (
    KEY,
    ONE,
    TWO,
    Clock,
    move,
    open_cluster,
    outcome,
    propose,
    strike,
    wish,
)
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.metrics.move_counts import MoveMetrics
from tidemark.broker.moves.executor import (
    ARRIVED_SECONDS,
    LATE_SECONDS,
    LOOK_SECONDS,
    MoveExecutor,
)
from tidemark.broker.network.turn import Turn
from tidemark.partitions.replication.ended_move import EndedMove, Ending
from tidemark.partitions.replication.moves import Phase
from tidemark.partitions.state_machines.cluster_commands import DeleteTopic
from tidemark.partitions.state_machines.cluster_values import MoveOutcome
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


@dataclass
class Replica:
    """The group's replica on this broker."""

    key: PartitionKey = KEY
    is_leader: bool = True


@dataclass
class Running:
    """The moves that are under way here."""

    keys: list[PartitionKey] = field(default_factory=list)
    aborted: list[PartitionKey] = field(default_factory=list)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self.keys

    def phases(self) -> Iterable[Phase]:
        return [Phase.CATCH_UP for _ in self.keys]

    def abort(self, key: PartitionKey, why: str, now: float) -> None:
        del why, now
        self.aborted.append(key)


@dataclass
class Groups:
    """The groups of broker 1, of which the test says what becomes."""

    node_id: NodeId = ONE
    replica: Replica = field(default_factory=Replica)
    moves: Running = field(default_factory=Running)
    asked: list[tuple[NodeId, float]] = field(default_factory=list)
    refusals: list[RequestError] = field(default_factory=list)

    def get(self, key: PartitionKey) -> Replica | None:
        return self.replica if key == KEY else None

    def move_leader(
        self, key: PartitionKey, target: NodeId, deadline: float, *, now: float
    ) -> None:
        assert key == KEY
        assert now == trio.current_time()
        self.asked.append((target, deadline))
        if self.refusals:
            raise self.refusals.pop(0)
        self.moves.keys.append(key)


@dataclass
class Broker:
    """Broker 1 with an executor at work."""

    cluster: ClusterLog
    groups: Groups
    metrics: MoveMetrics
    executor: MoveExecutor
    reported: list[MoveOutcome]
    lost_reports: int = 0

    def end(self, ending: Ending, why: str = "", *, target: NodeId = TWO) -> None:
        """The leader's part is over."""
        self.groups.moves.keys.clear()
        ended = EndedMove(
            key=KEY,
            target=target,
            ending=ending,
            why=why,
            attempts=1,
            catch_up_seconds=0.25,
            paused_seconds=0.0125,
        )
        self.executor.ended([ended])

    @property
    def wishes(self) -> int:
        return len(self.cluster.state.wishes.moves)


@asynccontextmanager
async def open_executor(groups: Groups | None = None) -> AsyncIterator[Broker]:
    cluster, groups, metrics = await open_cluster(), groups or Groups(), MoveMetrics()

    async def report(outcomes: Sequence[MoveOutcome]) -> None:
        if broker.lost_reports:
            broker.lost_reports -= 1
            raise RequestError(ErrorCode.NOT_CONTROLLER, "an election is on")
        broker.reported += outcomes
        await strike(cluster, *outcomes)

    executor = MoveExecutor(
        groups,  # type: ignore[arg-type]  # as much of them as it needs
        cluster,
        report,
        turn=Turn(),
        touch=lambda: None,
        clock=Clock(),
        metrics=metrics,
    )
    broker = Broker(cluster, groups, metrics, executor, [])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(executor.run)
        nursery.start_soon(executor.run_reports)
        yield broker
        nursery.cancel_scope.cancel()


async def test_a_wish_is_begun_once_and_struck_with_what_became_of_it(
    autojump_clock: MockClock,
) -> None:
    async with open_executor() as broker:
        wished = move(seconds=20)
        await wish(broker.cluster, wished)
        await trio.sleep(1)
        assert [target for target, _ in broker.groups.asked] == [TWO]
        assert abs(broker.groups.asked[0][1] - 20) < 0.1
        assert broker.metrics.running[Phase.CATCH_UP] == 1
        broker.end(Ending.DONE)
        await trio.sleep(0.2)
        (said,) = broker.reported
        assert (said.failure, said.attempts, said.catch_up_us, said.pause_us) == (
            None,
            1,
            250_000,
            12_500,
        )
        assert broker.wishes == 0
        assert broker.metrics.ended[Ending.DONE].value == 1
        assert broker.metrics.pause.sum_seconds == 0.0125
        await trio.sleep(0.2)
        assert broker.metrics.running[Phase.CATCH_UP] == 0


async def test_a_failed_move_is_struck_with_the_reason_and_not_tried_again(
    autojump_clock: MockClock,
) -> None:
    async with open_executor() as broker:
        await wish(broker.cluster, move())
        await trio.sleep(0.1)
        broker.end(Ending.FAILED, "broker 2 cannot be reached")
        await trio.sleep(1)
        assert [said.failure for said in broker.reported] == ["broker 2 cannot be reached"]
        assert (broker.wishes, len(broker.groups.asked)) == (0, 1)


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_partition_is_named_as_long_as_its_topic_is_there(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, *, is_deleted: bool
) -> None:
    """The replica here may be gone either way."""
    async with open_executor() as broker:
        await wish(broker.cluster, move())
        await trio.sleep(0.1)
        if is_deleted:
            await propose(
                broker.cluster, lambda version: DeleteTopic(at_version=version, id=KEY.topic_id)
            )
        broker.end(Ending.FAILED, "the replica was given up")
    deleted = f"partition 0 of a topic that is deleted (id {KEY.topic_id})"
    assert f"the leader of {deleted if is_deleted else 'waves-0'} did" in caplog.messages[-1]


async def test_a_leader_that_lost_the_lead_leaves_the_wish_to_the_next(
    autojump_clock: MockClock,
) -> None:
    async with open_executor() as broker:
        await wish(broker.cluster, move())
        await trio.sleep(0.1)
        broker.groups.replica.is_leader = False
        broker.end(Ending.LEFT, "broker 3 leads")
        await trio.sleep(1)
        assert (broker.reported, broker.wishes) == ([], 1)
        broker.groups.replica.is_leader = True  # again
        await trio.sleep(0.1)
        assert len(broker.groups.asked) == 2


async def test_who_comes_to_lead_finds_the_wish(autojump_clock: MockClock) -> None:
    groups = Groups(replica=Replica(is_leader=False))
    async with open_executor(groups) as broker:
        await wish(broker.cluster, move())
        await trio.sleep(5)
        assert groups.asked == []
        groups.replica.is_leader = True
        await trio.sleep(2 * LOOK_SECONDS)
        assert len(groups.asked) == 1


async def test_the_target_strikes_the_wish_unless_the_old_leader_does(
    autojump_clock: MockClock,
) -> None:
    async with open_executor() as broker:
        await wish(broker.cluster, move(ONE))
        await trio.sleep(ARRIVED_SECONDS - LOOK_SECONDS)
        assert (broker.reported, broker.groups.asked) == ([], [])
        await trio.sleep(3 * LOOK_SECONDS)
        assert [said.failure for said in broker.reported] == [None]
        assert broker.wishes == 0


async def test_a_leader_that_does_not_serve_yet_begins_when_it_does(
    autojump_clock: MockClock,
) -> None:
    groups = Groups(refusals=[RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 2)
    async with open_executor(groups) as broker:
        await wish(broker.cluster, move())
        await trio.sleep(1)
        assert (len(groups.asked), broker.reported) == (3, [])


async def test_what_only_the_leader_knows_is_refused_by_it(autojump_clock: MockClock) -> None:
    learner = RequestError(ErrorCode.INVALID_REQUEST, "broker 2 has no vote on waves-0")
    async with open_executor(Groups(refusals=[learner])) as broker:
        await wish(broker.cluster, move())
        await trio.sleep(1)
        assert [said.failure for said in broker.reported] == [learner.message]


async def test_a_wish_that_is_too_late_by_the_clock_of_its_leader_is_begun(
    autojump_clock: MockClock,
) -> None:
    """That clock may be an hour ahead: no leader would ever leave this broker."""
    async with open_executor() as broker:
        await wish(broker.cluster, move(seconds=-3600))
        begun = trio.current_time()
        await trio.sleep(0.1)
        assert broker.groups.asked == [(TWO, begun + LATE_SECONDS)]
        broker.end(Ending.FAILED, "broker 2 has not caught up")
        await trio.sleep(0.1)
        assert [said.failure for said in broker.reported] == ["broker 2 has not caught up"]


async def test_a_move_whose_wish_was_struck_is_given_up(autojump_clock: MockClock) -> None:
    async with open_executor() as broker:
        wished = move()
        await wish(broker.cluster, wished)
        await trio.sleep(0.1)
        await strike(broker.cluster, outcome(wished, "it took too long"))
        await trio.sleep(0.1)
        assert broker.groups.moves.aborted == [KEY]


async def test_a_lead_that_has_gone_is_not_taken_back(autojump_clock: MockClock) -> None:
    async with open_executor() as broker:
        wished = move()
        await wish(broker.cluster, wished)
        await trio.sleep(0.1)
        broker.groups.replica.is_leader = False
        await strike(broker.cluster, outcome(wished))
        await trio.sleep(0.1)
        assert broker.groups.moves.aborted == []


async def test_outcomes_are_said_until_they_are_noted(autojump_clock: MockClock) -> None:
    async with open_executor() as broker:
        broker.lost_reports = 3
        await wish(broker.cluster, move())
        await trio.sleep(0.1)
        broker.end(Ending.DONE)
        await trio.sleep(1)
        assert (broker.lost_reports, len(broker.reported), broker.wishes) == (0, 1, 0)
        await wish(broker.cluster, move(seconds=40))
        await trio.sleep(0.1)
        assert len(broker.groups.asked) == 2, "the next wish is another one"


async def test_moves_that_nobody_wished_are_passed_over(autojump_clock: MockClock) -> None:
    async with open_executor() as broker:
        broker.end(Ending.DONE)
        await trio.sleep(1)
        assert broker.reported == []
