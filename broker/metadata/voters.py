"""Who votes on the cluster's metadata: the leader sees to it that there are enough.

A broker that is to vote is a learner first, until it holds what the others hold; then all that are
to come, come at once, by the group's own change of configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.network.turn import Turn
from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_brokers import voters_wanted
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId, Position

LOOK_SECONDS: Final = 0.25
STALL_SECONDS: Final = 1.5
"""A learner that has heard nothing for so long pulls for itself."""


def adjust_voters(
    node: ReplicationNode, state: ClusterState, is_alive: Callable[[NodeId], bool]
) -> bool:
    """Do the next thing there is to do about the voters, if this broker leads; in a turn.

    Returns whether there is more to do, or to wait for.
    """
    replica = node.get(CLUSTER_KEY)
    if replica is None or not replica.is_serving:
        return False
    group = replica.group
    if group.config.is_joint:
        return True
    voters = group.config.voters
    wanted = voters_wanted(list(state.brokers), voters, is_alive)
    following = {each.node for each in group.progress()}
    if set(wanted) == set(voters):
        # Learners stay while they live: who is sent the log does not pull it.
        for other in sorted(following - set(voters)):
            if not is_alive(other):
                replica.tell(partial(Group.remove_learner, node=other))
        return False
    missing = [other for other in wanted if other not in following and other != node.node_id]
    for other in missing:
        replica.tell(partial(Group.add_learner, node=other))
    if not missing:
        replica.tell(partial(_change, voters=wanted))
    return True


def _change(group: Group, voters: tuple[NodeId, ...]) -> None:
    try:
        group.change_config(voters)
    except RequestError:
        # They have not caught up. They will be asked for again.
        return


async def keep_voters(
    node: ReplicationNode,
    state: Callable[[], ClusterState],
    is_alive: Callable[[NodeId], bool],
    *,
    turn: Turn,
    touch: Callable[[], None],
    follow: Callable[[], None],
) -> None:
    """Look after the voters, again and again, as long as this runs.

    A broker that does not vote looks after itself: `follow` is called when nothing has come for
    long, though there is more. It may have been a learner of a leader that knows it no more.
    """
    stall = Stall()

    def look() -> None:
        adjust_voters(node, state(), is_alive)
        touch()

    while True:
        await trio.sleep(LOOK_SECONDS)
        replica = node.get(CLUSTER_KEY)
        if replica is None:
            continue
        if replica.is_serving:
            turn.run(look)
        elif not replica.group.is_voter:
            led_to = node.known.get(CLUSTER_KEY).committed
            if stall.is_over(replica.committed, led_to, trio.current_time()):
                turn.run(follow)


class Stall:
    """How long a replica has been behind without coming nearer."""

    def __init__(self) -> None:
        self._at: Position | None = None
        self._since = 0.0

    def is_over(self, committed: Position, led_to: Position, now: float) -> bool:
        """Whether something has to be done: it has been so for long. Then it begins anew."""
        if committed != self._at or led_to <= committed:
            self._at, self._since = committed, now
        elif now - self._since >= STALL_SECONDS:
            self._since = now
            return True
        return False
