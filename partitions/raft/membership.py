"""Who votes next (Raft §6): which configuration may follow, and what its epoch begins with.

A configuration takes effect with the start of an epoch, so a leader that changes it campaigns again
in its own favour. It goes over by a joint one, in which both sides have to agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.partitions.raft.candidate import Plan
from tidemark.partitions.raft.doubt import doubts_of
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.progress import Progress
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


def begin_change(
    group: Group, followers: Mapping[NodeId, Progress], voters: tuple[NodeId, ...], version: int
) -> Configuration:
    """The first configuration on the way to these voters. Raises `RequestError` if that may not
    begin now."""
    config = group.config
    if not voters or len({*voters}) != len(voters):
        raise refused("voters must be some, and each once")
    if config.is_joint or not group.is_serving or group.successor is not None:
        # Raft's rule since Ongaro's correction of 2015: first an entry of the own epoch.
        raise refused("another change is under way, or this epoch's start is not committed")
    if version < config.version:
        raise refused("these voters are of a newer wish")
    if {*voters} == {*config.voters}:
        if version == config.version:
            raise refused("these are the voters")
        return Configuration(config.voters, version=version)
    for node in voters:
        if node == group.node_id:
            continue
        progress = followers.get(node)
        if progress is None or progress.held.counted < group.durable:
            raise refused(f"node {node} has not caught up")
    return Configuration(tuple(sorted(voters)), config.voters, version)


def plan_for(group: Group, followers: Mapping[NodeId, Progress], config: Configuration) -> Plan:
    """What the same leader's next epoch is to know of the nodes of this one."""
    former = {*group.config.outgoing} - {*config.members}
    learners = {*followers} - {*group.config.members} - {*config.members}
    return Plan(config, tuple(sorted(learners)), doubts_of(followers), tuple(sorted(former)))


def refused(why: str) -> RequestError:
    """That the leader cannot do what is asked of it."""
    return RequestError(ErrorCode.INVALID_REQUEST, why)
