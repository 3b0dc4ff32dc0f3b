"""The replicas on this broker that have no vote: somebody has to send them the log, or they pull.

A learner is sent it by the leader. A leader that is replaced, or gives a learner up, does not say
so; the replica would wait for ever. So one to which nothing has come for long pulls for itself, and
if it was a learner after all, the next thing that the leader sends makes it one again.

Nor is a voter told that was away when its vote was taken from it: it counts itself in, and is none
of the leader's. It pulls, too, until its log says so. If it was a voter after all, it loses nothing
meanwhile: the others, who have committed something in the leader's epoch, would be elected before
it, and it goes on voting for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import trio

from tidemark.broker.looks import next_look
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.network.turn import Turn
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Position
from tidemark.protocol.values import dataclass

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
    """Looks after some of a broker's. Used on the loop's thread."""

    def __init__(self, node: ReplicationNode, keys: Callable[[], Iterable[PartitionKey]]) -> None:
        """Of the groups with these `keys`, and looks at no others."""
        self._node = node
        self._keys = keys
        self._standings: dict[PartitionKey, _Standing] = {}
        self._has_told = False

    def look(self, now: float) -> bool:
        """Have those pull that wait in vain, in a turn; whether there were any."""
        before, self._standings, self._has_told = self._standings, {}, False
        for key in self._keys():
            replica = self._node.get(key)
            if replica is None or replica.failure is not None:
                continue
            if replica.group.is_voter and not self._is_left_out(replica):
                continue
            self._standings[key] = self._look_at(replica, before.get(key), now)
        return self._has_told

    def _look_at(self, replica: GroupReplica, seen: _Standing | None, now: float) -> _Standing:
        standing = seen or _Standing(replica.committed, now)
        if standing.committed != replica.committed or self._has_all(replica):
            standing.committed, standing.since = replica.committed, now
        parents = parents_of(self._node, replica)
        if isinstance(replica.group.role, Observer):
            is_waiting = standing.parents != parents
        else:
            is_waiting = now - standing.since >= STALL_SECONDS
        if is_waiting:
            self._node.observe(replica.key, parents)
            standing.parents, standing.since = parents, now
            self._has_told = True
        return standing

    def _is_left_out(self, replica: GroupReplica) -> bool:
        """Whether a voter has nothing of an epoch in which the others have committed something."""
        known = self._node.known.get(replica.key)
        return known.leads and known.committed.epoch > replica.group.shape.last.epoch

    def _has_all(self, replica: GroupReplica) -> bool:
        """Whether that is known: of a group of which all brokers are told."""
        known = self._node.known.get(replica.key)
        return replica.is_eager and known.leads and known.committed <= replica.committed


def parents_of(node: ReplicationNode, replica: GroupReplica) -> tuple[NodeId, ...]:
    """Whom a replica without a vote may ask: who votes by its own log, and who leads. All of those
    voters may have been replaced since."""
    voters, known = replica.group.config.members, node.known.get(replica.key)
    if known.leads and known.node not in voters:
        return (*voters, known.node)
    return voters


async def keep_following(
    node: ReplicationNode,
    *,
    observes: Callable[[PartitionKey], bool],
    turn: Turn,
    touch: Callable[[], None],
) -> None:
    """Look after the metadata's replica while it has no vote and `observes` no other way.

    All others without a vote are about to move, and wait for their leader: it knows how much may
    be sent. None of those is looked at, for there may be thousands.
    """

    def keys() -> Sequence[PartitionKey]:
        return () if observes(CLUSTER_KEY) else (CLUSTER_KEY,)

    non_voters = NonVoters(node, keys)

    def look(now: float) -> None:
        if non_voters.look(now):
            touch()

    while True:
        turn.run(partial(look, trio.current_time()))
        await trio.sleep_until(next_look(LOOK_SECONDS))
