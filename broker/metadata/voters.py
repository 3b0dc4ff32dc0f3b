"""Who votes on the cluster's metadata: the leader sees to it that there are enough.

A broker that is to vote is a learner first, until it holds what the others hold; then all that are
to come, come at once, by the group's own change of configuration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from tidemark.broker.looks import next_look
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.network.turn import Turn
from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_brokers import voter_count, voters_wanted
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId

LOOK_SECONDS: Final = 0.25
SETTLED_SECONDS: Final = 1.0
"""The same while all brokers live and all that should vote do."""


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
    wanted = voters_wanted(_staying(state), voters, is_alive)
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


def _staying(state: ClusterState) -> list[NodeId]:
    """The brokers that may vote: those that are to leave do not, while there are enough others."""
    everybody = list(state.brokers)
    staying = [
        node
        for node in everybody
        if state.wishes.broker_state(node) is not BrokerState.DECOMMISSIONING
    ]
    enough = voter_count(len(staying)) == voter_count(len(everybody))
    return staying if enough else everybody


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
    wait_more: Callable[[], Awaitable[None]],
) -> None:
    """Look after the voters, again and again, as long as this runs.

    `wait_more` waits until the metadata have changed.
    """
    is_changing = False

    def look(replica: GroupReplica) -> None:
        nonlocal is_changing
        is_changing = adjust_voters(node, state(), is_alive)
        if replica in node.dirty:
            touch()

    while True:
        is_settled = not is_changing and all(map(is_alive, state().brokers))
        with trio.move_on_at(next_look(SETTLED_SECONDS if is_settled else LOOK_SECONDS)):
            await wait_more()
        replica = node.get(CLUSTER_KEY)
        if replica is not None and replica.is_serving:
            turn.run(partial(look, replica))
