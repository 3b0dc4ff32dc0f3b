"""Which brokers take leaders, which are left alone, and which are being emptied; which replicas of
a group may lead it next. Every no comes with its sentence.
"""

from __future__ import annotations

from enum import Enum, auto

from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


class Role(Enum):
    """A broker's part in a plan."""

    TAKES = auto()
    """It is given leaders, and gives them away."""
    LEFT_ALONE = auto()
    """Its leaders are nobody's business, and it gets none. It counts neither as capacity nor as
    load: evenness is sought among the others."""
    EMPTIED = auto()
    """It gives its leaders away, whatever that does to evenness."""


@dataclass(frozen=True, slots=True)
class No:
    """Why something may not be."""

    reason: Reason
    sentence: str


def role_of(broker: Broker, now_ms: int, settings: Settings) -> Role:
    if not broker.is_alive:
        return Role.LEFT_ALONE
    if broker.state is not BrokerState.ACTIVE or _stays_full(broker, now_ms, settings):
        return Role.EMPTIED
    if why_no_leaders(broker, now_ms, settings) is not None:
        return Role.LEFT_ALONE
    return Role.TAKES


def _stays_full(broker: Broker, now_ms: int, settings: Settings) -> bool:
    """Whether its disk is full, and not for a moment only: who leads elsewhere takes records."""
    since_ms, patience_ms = broker.disk_since_ms, settings.full_patience_ms
    if not broker.is_full or patience_ms is None:
        return False
    return since_ms is None or now_ms - since_ms >= patience_ms


def why_emptied(broker: Broker) -> str:
    """Of a broker that is."""
    if broker.state is BrokerState.ACTIVE:
        return f"the disk of broker {broker.node_id} is full"
    return f"broker {broker.node_id} is {broker.state.value}"


def why_no_leaders(broker: Broker, now_ms: int, settings: Settings) -> No | None:
    """Why a broker is given no leaders; None if it is given some."""
    name = f"broker {broker.node_id}"
    if not broker.is_alive:
        return No(Reason.DEAD, f"{name} is not alive")
    if broker.state is not BrokerState.ACTIVE:
        return No(Reason.LEADS_NOTHING, f"{name} is {broker.state.value}")
    if broker.is_full:
        return No(Reason.FULL_DISK, f"the disk of {name} is full: it takes no records")
    if not broker.has_told:
        return No(Reason.UNHEARD, f"{name} has not said yet whether its disk takes records")
    if broker.disk_since_ms is not None:
        room_ms = now_ms - broker.disk_since_ms
        if room_ms < settings.room_grace_ms:
            return No(
                Reason.FULL_DISK,
                f"the disk of {name} was full {seconds(room_ms)} ago and is left alone for "
                f"{seconds(settings.room_grace_ms)}",
            )
    up_ms = now_ms - broker.up_since_ms
    if up_ms < settings.start_grace_ms:
        return No(
            Reason.JUST_STARTED,
            f"{name} started {seconds(up_ms)} ago and is left alone for "
            f"{seconds(settings.start_grace_ms)}",
        )
    return None


def why_not_in_sync(group: Group, node: NodeId, settings: Settings) -> No | None:
    """Why `node` could not lead `group` at once; None if it could, or does."""
    if node == group.leader:
        return None
    if node not in group.voters:
        if node in group.learners:
            return No(Reason.LEARNER, f"on broker {node} it is a learner, which does not vote")
        return No(Reason.NOT_A_REPLICA, f"broker {node} is none of its voters")
    lag = group.lags.get(node)
    if lag is None:
        return No(Reason.OUT_OF_SYNC, f"broker {node} has not said how far it is")
    if lag > settings.lag_records_max:
        return No(
            Reason.OUT_OF_SYNC,
            f"broker {node} is {lag} records behind, and {settings.lag_records_max} are allowed",
        )
    return None


def why_in_motion(group: Group) -> No | None:
    """Why the leader of `group` cannot be moved by anybody now."""
    if group.leader is None:
        return No(Reason.NO_LEADER, "it has no leader now")
    if group.moving_to is not None:
        return No(Reason.IN_MOTION, f"its leader is on its way to broker {group.moving_to}")
    if group.is_changing:
        return No(Reason.IN_MOTION, "its replicas are being changed")
    return None


def why_cooling(group: Group, now_ms: int, settings: Settings) -> No | None:
    """Why `group` is let be for a while."""
    if group.moved_ms is None or now_ms - group.moved_ms >= settings.cool_down_ms:
        return None
    return No(
        Reason.COOL_DOWN,
        f"its leader changed {seconds(now_ms - group.moved_ms)} ago and is let be for "
        f"{seconds(settings.cool_down_ms)}",
    )


def seconds(duration_ms: int) -> str:
    """A duration as sentences have it: "8 s", "0.5 s"."""
    value = max(0, duration_ms) / 1000
    return f"{value:.0f} s" if value >= 10 or value == int(value) else f"{value:.1f} s"
