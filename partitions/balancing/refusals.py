"""Why a leader is not moved, or a replica not."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass


class Reason(Enum):
    """The kinds of refusal. The value is for tables and metrics."""

    # Of a broker
    DEAD = "dead"
    LEADS_NOTHING = "drained"
    JUST_STARTED = "just started"
    FULL_DISK = "full disk"
    UNHEARD = "not heard"
    UNKNOWN = "unknown"
    # Of a replica
    NOT_A_REPLICA = "not a replica"
    LEARNER = "learner"
    OUT_OF_SYNC = "out of sync"
    # Of a group
    NO_LEADER = "no leader"
    IN_MOTION = "in motion"
    COOL_DOWN = "cool-down"
    IN_FLIGHT = "moves in flight"
    TOO_LITTLE = "too little gain"
    QUORUM = "quorum"
    NOT_NEEDED = "not needed"
    TOO_FEW_BROKERS = "too few brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is not done, and why. One for all groups that it is true of for the same reason."""

    reason: Reason
    sentence: str
    """About `partition`, if there is one."""
    target: NodeId | None = None
    """Where it does not go; None: it is about the group itself."""
    partition: TopicPartition | None = None
    """The one that it hurts most."""
    groups: int = 1
    """How many it is about."""


class Refusals:
    """Collects refusals; those of one reason and target become one."""

    def __init__(self) -> None:
        self._found: dict[tuple[Reason, NodeId | None], Refusal] = {}

    def add(
        self,
        reason: Reason,
        sentence: str,
        *,
        partition: TopicPartition | None = None,
        target: NodeId | None = None,
    ) -> None:
        """The first one is the one that is named."""
        before = self._found.get((reason, target))
        self._found[reason, target] = (
            replace(before, groups=before.groups + 1)
            if before is not None
            else Refusal(
                reason=reason,
                sentence=sentence,
                target=target,
                partition=partition,
                groups=0 if partition is None else 1,
            )
        )

    def all(self) -> tuple[Refusal, ...]:
        return tuple(self._found.values())
