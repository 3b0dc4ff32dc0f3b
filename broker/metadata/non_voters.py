"""The replicas on this broker that have no vote: somebody has to send them the log, or they pull.

A learner is sent it by the leader. A leader that is replaced, or gives a learner up, does not say
so; the replica would wait for ever. So one to which nothing has come for long pulls for itself, and
if it was a learner after all, the next thing that the leader sends makes it one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from tidemark.broker.network.turn import Turn
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Position

LOOK_SECONDS: Final = 1.0
STALL_SECONDS: Final = 1.5
"""For so long a learner believes that the leader has nothing for it."""


@dataclass(slots=True)
class _Standing:
    """How a replica without a vote was seen last."""

    committed: Position
    since: float
    """Since when it has been there."""
    parents: tuple[NodeId, ...] = ()
    """From whom it was told to pull."""


class NonVoters:
    """Looks after all of a broker's. Used on the loop's thread."""

    def __init__(self, node: ReplicationNode) -> None:
        self._node = node
        self._standings: dict[PartitionKey, _Standing] = {}
        self._has_told = False

    def look(self, now: float) -> bool:
        """Have those pull that wait in vain, in a turn; whether there were any."""
        before, self._standings, self._has_told = self._standings, {}, False
        for replica in list(self._node.replicas):
            if not replica.group.is_voter and replica.failure is None:
                standing = before.get(replica.key)
                self._standings[replica.key] = self._look_at(replica, standing, now)
        return self._has_told

    def _look_at(self, replica: GroupReplica, seen: _Standing | None, now: float) -> _Standing:
        standing = seen or _Standing(replica.committed, now)
        if standing.committed != replica.committed or self._has_all(replica):
            standing.committed, standing.since = replica.committed, now
        voters = replica.group.config.members
        if isinstance(replica.group.role, Observer):
            is_waiting = standing.parents != voters
        else:
            is_waiting = now - standing.since >= STALL_SECONDS
        if is_waiting:
            self._node.observe(replica.key, voters)
            standing.parents, standing.since = voters, now
            self._has_told = True
        return standing

    def _has_all(self, replica: GroupReplica) -> bool:
        """Whether that is known: of a group of which all brokers are told."""
        known = self._node.known.get(replica.key)
        return replica.is_eager and known.leads and known.committed <= replica.committed


async def keep_following(node: ReplicationNode, *, turn: Turn, touch: Callable[[], None]) -> None:
    """Look after the replicas without a vote, again and again, as long as this runs."""
    non_voters = NonVoters(node)

    def look(now: float) -> None:
        if non_voters.look(now):
            touch()

    while True:
        turn.run(partial(look, trio.current_time()))
        await trio.sleep(LOOK_SECONDS)
