"""What stands in the way of the moves that would make a cluster evener yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tidemark.partitions.balancing.board import NONE, Board
from tidemark.partitions.balancing.eligibility import (
    No,
    Role,
    why_cooling,
    why_in_motion,
    why_no_leaders,
    why_not_in_sync,
)
from tidemark.partitions.balancing.refusals import Reason, Refusal
from tidemark.partitions.balancing.snapshot import BrokerState
from tidemark.partitions.balancing.steps import Step
from tidemark.partitions.balancing.tally import EPSILON
from tidemark.protocol.values import dataclass

_IN_FLIGHT: Final = No(Reason.IN_FLIGHT, "as many leaders as may be are on the move")
_NO_HEIR: Final = No(Reason.OUT_OF_SYNC, "no other voter is in sync on a broker that takes leaders")
_LEADERLESS: Final = No(Reason.NO_LEADER, "it has no leader now, or one that nobody knows")


def refusals(board: Board, steps: Sequence[Step]) -> Iterator[Refusal]:
    """Why no more is moved: first the brokers that get nothing, then groups, counted together
    where the reason is the same.
    `board` is as the steps have left it."""
    voters = Counter(node for group in board.groups for node in group.voters)
    for broker in board.brokers:
        no = why_no_leaders(broker, board.now_ms, board.settings)
        if no is not None:
            yield Refusal(
                reason=no.reason,
                sentence=no.sentence,
                target=broker.node_id,
                groups=voters[broker.node_id],
            )
    yield from _Collector(board, steps).collect()


def stuck(board: Board, steps: Sequence[Step]) -> Iterator[Refusal]:
    """Why leaders stay on brokers that are being emptied."""
    return _Collector(board, steps).collect_stuck()


@dataclass(slots=True)
class _Found:
    """Groups that are not moved to the same broker for the same reason."""

    no: No
    """Of the one that would gain the most."""
    number: int
    target: int
    gain: float
    groups: int = 0


class _Collector:
    def __init__(self, board: Board, steps: Sequence[Step]) -> None:
        self._board = board
        self._moved = {shift.group for step in steps for shift in step.shifts}
        self._index = {broker.node_id: number for number, broker in enumerate(board.brokers)}
        self._found: dict[tuple[Reason, int], _Found] = {}

    def collect(self) -> Iterator[Refusal]:
        board = self._board
        for number, lead in enumerate(board.lead):
            if lead == NONE:
                self._note(_LEADERLESS, NONE, number)
            elif board.is_forced[number]:
                self._note(self._why_stuck(number), NONE, number)
            elif number not in self._moved and board.roles[lead] is Role.TAKES:
                self._look_at(number)
        return self._refusals()

    def collect_stuck(self) -> Iterator[Refusal]:
        for number, is_forced in enumerate(self._board.is_forced):
            if is_forced:
                self._note(self._why_stuck(number), NONE, number)
        return self._refusals()

    def _refusals(self) -> Iterator[Refusal]:
        found = sorted(self._found.values(), key=lambda each: (-each.groups, each.number))
        return map(self._refusal, found)

    def _why_stuck(self, number: int) -> No:
        """Why a leader stays on a broker that is being emptied."""
        no = why_in_motion(self._board.groups[number])
        return no or (_IN_FLIGHT if self._board.targets[number] else _NO_HEIR)

    def _look_at(self, number: int) -> None:
        board, group = self._board, self._board.groups[number]
        lead, targets = board.lead[number], board.targets[number]
        blocked: No | None = _IN_FLIGHT
        if not board.is_open[number]:
            blocked = why_in_motion(group) or why_cooling(group, board.now_ms, board.settings)
        for target in targets:
            if target != lead and (gain := board.gain(number, target)) > EPSILON:
                price = board.price(number, target)
                no = _too_little(price) if gain <= price + EPSILON else blocked
                if no is not None:
                    self._note(no, target, number, gain)
        if len(targets) < len(group.replicas):
            self._look_at_others(number)

    def _look_at_others(self, number: int) -> None:
        """Replicas that cannot lead now, where that would be good."""
        board, group = self._board, self._board.groups[number]
        for node in group.replicas:
            target = self._index.get(node, NONE)
            if target in (NONE, board.lead[number]) or board.roles[target] is not Role.TAKES:
                continue
            no = why_not_in_sync(group, node, board.settings)
            if no is not None and (gain := board.gain(number, target)) > EPSILON:
                self._note(no, target, number, gain)

    def _note(self, no: No, target: int, number: int, gain: float = 0.0) -> None:
        found = self._found.get((no.reason, target))
        if found is None:
            found = self._found[no.reason, target] = _Found(no, number, target, gain)
        elif gain > found.gain:
            found.no, found.number, found.gain = no, number, gain
        found.groups += 1

    def _refusal(self, found: _Found) -> Refusal:
        board, target, sentence = self._board, None, found.no.sentence
        lead = board.lead[found.number]
        if found.target != NONE:
            target = board.brokers[found.target].node_id
            source = board.brokers[lead].node_id
            sentence = f"from broker {source} to {target} would gain {found.gain:.3g}: {sentence}"
        elif lead != NONE:
            broker = board.brokers[lead]
            what = (
                "whose disk is full" if broker.state is BrokerState.ACTIVE else broker.state.value
            )
            sentence = f"stays on broker {broker.node_id}, {what}: {sentence}"
        return Refusal(
            reason=found.no.reason,
            sentence=sentence,
            target=target,
            partition=board.groups[found.number].partition,
            groups=found.groups,
        )


def _too_little(price: float) -> No:
    return No(Reason.TOO_LITTLE, f"less than the {price:.3g} that errors of measuring may come to")
