"""The balancer of leaders: a snapshot in, the moves that make the cluster evener out, and why.

Cruise Control's goals, Redpanda's and CockroachDB's balancers were looked at for what they ask of
such a plan; `docs/decisions/0006-balancing.md` says what was taken from whom, and why this differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import reduce
from random import Random
from typing import Final

from tidemark.partitions.balancing.board import NONE, Board, Objective
from tidemark.partitions.balancing.bounds import Bounds
from tidemark.partitions.balancing.eligibility import Role, why_emptied
from tidemark.partitions.balancing.obstacles import refusals
from tidemark.partitions.balancing.refusals import Refusal
from tidemark.partitions.balancing.search import Search
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import BrokerState, Snapshot
from tidemark.partitions.balancing.steps import Shift, Step
from tidemark.partitions.balancing.tally import Gains
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass

_NEGLIGIBLE: Final = 1e-12


class Cause(Enum):
    """What a move is for, above all. The value is for metrics."""

    EMPTY = "drain"
    FULL_DISK = "full disk"
    COUNT = "leaders"
    TOPIC = "topic"
    RATE = "traffic"
    PREFERRED = "preferred"

    @property
    def empties(self) -> bool:
        """Whether it takes a leader off a broker that is to lead nothing."""
        return self in (Cause.EMPTY, Cause.FULL_DISK)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMove:
    """One leader to be handed over."""

    partition: TopicPartition
    source: NodeId
    target: NodeId
    step: int
    """Moves of one step are worth it together: begin all of them, or none."""
    gain: float
    """What the step takes off the objective; 0 for one that empties a broker, which need not."""
    reason: str
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """A broker before and after a plan. A share is of the traffic of all that is balanced, or of
    `quiet_bytes_per_second` if that is more."""

    node_id: NodeId
    role: Role
    leaders_before: int
    leaders_after: int
    share_before: float
    share_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Moves, in the order in which they had best begin, and what is not done.

    Invariant: `after` is not worse than `before`, and it is better if there are moves; the same is
    so after each step.
    """

    moves: tuple[LeaderMove, ...]
    refusals: tuple[Refusal, ...]
    before: Objective
    after: Objective
    brokers: tuple[BrokerLoad, ...]


def plan(
    snapshot: Snapshot, settings: Settings, rng: Random, *, only_empties: bool = False
) -> Plan:
    """The next moves: as many as may begin now. The same arguments give the same plan.

    Groups that are on the move are taken to be where they go to, so a plan can be made while the
    one before is being carried out. `settings.without_bounds()` shows the way to its end. With
    `only_empties` leaders move off brokers that are to lead nothing, and no others.
    """
    board = Board(snapshot, settings)
    before, loads = board.objective(), _loads(board)
    search = Search(board, Bounds(board), rng)
    if only_empties:
        search.empty()
    else:
        search.run()
    after = board.objective()
    assert not after.is_worse_than(before)
    return Plan(
        moves=tuple(leader_moves(board, search.steps)),
        refusals=tuple(refusals(board, search.steps)),
        before=before,
        after=after,
        brokers=tuple(
            BrokerLoad(
                node_id=broker.node_id,
                role=role,
                leaders_before=was[0],
                leaders_after=now[0],
                share_before=was[1],
                share_after=now[1],
            )
            for broker, role, was, now in zip(
                board.brokers, board.roles, loads, _loads(board), strict=True
            )
        ),
    )


def _loads(board: Board) -> list[tuple[int, float]]:
    """Of brokers that are left alone, too, whose leaders the tally does not count."""
    counts, shares = [0] * len(board.brokers), [0.0] * len(board.brokers)
    for lead, share in zip(board.lead, board.share, strict=True):
        if lead != NONE:
            counts[lead] += 1
            shares[lead] += share
    return list(zip(counts, shares, strict=True))


# Why


def leader_moves(board: Board, steps: list[Step]) -> Iterator[LeaderMove]:
    """The steps in names and sentences."""
    for number, step in enumerate(steps, start=1):
        partners = [board.groups[shift.group].partition for shift in step.shifts]
        cause = _cause(board, step)
        for at, shift in enumerate(step.shifts):
            forced = _forced(board, shift)
            others = partners[:at] + partners[at + 1 :]
            yield LeaderMove(
                partition=partners[at],
                source=board.brokers[shift.source].node_id,
                target=board.brokers[shift.target].node_id,
                step=number,
                gain=0.0 if forced else step.gain,
                reason=_reason(board, step, shift, others),
                cause=forced or cause,
            )


def _forced(board: Board, shift: Shift) -> Cause | None:
    """What a leader's source is emptied for, if it is, whatever the move's step does besides."""
    if board.roles[shift.source] is not Role.EMPTIED:
        return None
    is_drain = board.brokers[shift.source].state is not BrokerState.ACTIVE
    return Cause.EMPTY if is_drain else Cause.FULL_DISK


def _cause(board: Board, step: Step) -> Cause:
    """Of the step as a whole: of two that change places, neither is worth anything alone."""
    gains = reduce(Gains.plus, (shift.gains for shift in step.shifts))
    by_cause = {
        Cause.COUNT: gains.count,
        Cause.TOPIC: gains.topic,
        Cause.RATE: gains.share,
        Cause.PREFERRED: gains.preferred,
    }
    return max(by_cause, key=by_cause.__getitem__)


def _reason(board: Board, step: Step, shift: Shift, others: list[TopicPartition]) -> str:
    source, target = board.brokers[shift.source], board.brokers[shift.target]
    if _forced(board, shift) is not None:
        return why_emptied(source)
    topic = board.groups[shift.group].partition.topic
    causes = {
        f"broker {source.node_id} leads {shift.counts[0]}, "
        f"broker {target.node_id} {shift.counts[1]}": shift.gains.count,
        f"of {topic} broker {source.node_id} leads {shift.counts_of_topic[0]}, "
        f"broker {target.node_id} {shift.counts_of_topic[1]}": shift.gains.topic,
        f"broker {source.node_id} carries {shift.shares[0]:.1%} of the traffic, "
        f"broker {target.node_id} {shift.shares[1]:.1%}, this group "
        f"{board.share[shift.group]:.1%}": shift.gains.share,
        f"broker {target.node_id} is its preferred leader": shift.gains.preferred,
    }
    good = [cause for cause in causes if causes[cause] > _NEGLIGIBLE]
    good.sort(key=lambda cause: -causes[cause])
    if others:
        good.append(f"together with {', '.join(map(str, others))}")
    elif not good:
        # What is left of steps of which the others have cancelled each other out.
        good.append(f"with the plan's other moves it gains {step.gain:.3g}")
    return "; ".join(good)
