"""BalanceLeaders: even out the leaders now, or say what that would do, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.balancing.board import Objective
from tidemark.partitions.balancing.eligibility import Role
from tidemark.partitions.balancing.leaders import BrokerLoad, LeaderMove, Plan
from tidemark.partitions.balancing.refusals import Refusal
from tidemark.protocol.messages.balance_leaders import (
    BalancedBroker,
    BalanceLeadersRequest,
    BalanceLeadersResponse,
    PlannedMove,
    RefusedMove,
    UnevennessTerm,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_ROLES: Final = {Role.TAKES: "takes", Role.LEFT_ALONE: "left alone", Role.EMPTIED: "emptied"}
_BEFORE_ALL_ELSE: Final = -1.0
_NOBODY: Final = -1


async def handle(
    node: Node, request: BalanceLeadersRequest, _context: RequestContext
) -> BalanceLeadersResponse:
    """Answers on the leader of the metadata, with all moves; they are begun a few at a time."""
    made = await node.balancing.balance(dry_run=request.dry_run, at_once=request.now)
    return BalanceLeadersResponse(
        is_enabled=node.balancing.balancer.is_enabled,
        terms=_terms(made),
        brokers=[_broker(load) for load in made.brokers],
        moves=[_move(move) for move in made.moves],
        refusals=refused_moves(made.refusals),
    )


def _terms(made: Plan) -> list[UnevennessTerm]:
    before, after, weights = made.before, made.after, made.before.weights

    def term(name: str, weight: float, of: str) -> UnevennessTerm:
        return UnevennessTerm(
            name=name, weight=weight, before=_value(before, of), after=_value(after, of)
        )

    return [
        term("leaders misplaced", _BEFORE_ALL_ELSE, "misplaced"),
        term("leaders per broker", weights.count, "count"),
        term("leaders per topic", weights.topic, "topic"),
        term("traffic", weights.rate, "rate"),
        term("preferred leaders", weights.preferred, "preferred"),
    ]


def _value(objective: Objective, name: str) -> float:
    return float(getattr(objective, name))


def _broker(load: BrokerLoad) -> BalancedBroker:
    return BalancedBroker(
        node_id=load.node_id,
        role=_ROLES[load.role],
        leaders_before=load.leaders_before,
        leaders_after=load.leaders_after,
        share_before=load.share_before,
        share_after=load.share_after,
    )


def _move(move: LeaderMove) -> PlannedMove:
    return PlannedMove(
        topic=move.partition.topic,
        partition=move.partition.partition,
        source=move.source,
        target=move.target,
        step=move.step,
        gain=move.gain,
        reason=move.reason,
    )


def refused_moves(refusals: Iterable[Refusal]) -> list[RefusedMove]:
    """As they are told."""
    return [
        RefusedMove(
            reason=refusal.reason.value,
            sentence=refusal.sentence,
            target=_NOBODY if refusal.target is None else refusal.target,
            topic=None if refusal.partition is None else refusal.partition.topic,
            partition=_NOBODY if refusal.partition is None else refusal.partition.partition,
            partitions=refusal.groups,
        )
        for refusal in refusals
    ]


CHANGE: Final = Change(handle=handle, response=BalanceLeadersResponse, may_repeat=True)
