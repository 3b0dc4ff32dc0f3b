"""In which phase of the protocol a broker is, with respect to one group."""

from __future__ import annotations

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.testing.simulator.broker import Broker


def phase_of(broker: Broker, key: PartitionKey) -> str:
    """One of `coverage.PHASES`: the rarest that applies."""
    process = broker.process
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
