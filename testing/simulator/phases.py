"""In which phase of the protocol a broker is, with respect to one group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.partitions.replication.moves import Phase
from tidemark.partitions.storage.state_db import PartitionKey

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

PHASE_OF_A_MOVE: Final = {
    Phase.CATCH_UP: "catching up",
    Phase.PAUSE: "pausing",
    Phase.HAND_OVER: "handing over",
}


def phase_of(process: Process | None, key: PartitionKey) -> str:
    """One of `coverage.PHASES`: the rarest that applies."""
    if process is None:
        return "recovering"
    replica = process.node.get(key)
    if replica is None:
        return "idle"
    group = replica.group
    if replica.is_held:
        return "truncating"
    if group.config.is_joint:
        return "reconfiguring"
    move = process.node.moves.phase(key)
    if move is not None:
        return PHASE_OF_A_MOVE[move]
    if group.successor is not None:
        return "handing over"
    if replica.leader is None:
        return "electing"
    if replica.is_leader and not replica.is_serving:
        return "opening an epoch"
    if process.is_checkpointing:
        return "checkpointing"
    if replica.high_watermark < replica.log_end:
        return "replicating"
    return "idle"
