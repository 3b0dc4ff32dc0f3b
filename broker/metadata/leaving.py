"""A broker that is to leave for good says in its own log when nothing keeps it any more.

Who decommissions a broker may not wait for the end of it, and whoever looks at the broker itself
should not have to ask the cluster why it holds nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import trio

from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.types import NodeId

LOOK_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)


async def tell_when_left(
    own: NodeId,
    state: Callable[[], ClusterState],
    voters: Callable[[], Collection[NodeId]],
    *,
    wait_more: Callable[[], Awaitable[None]],
) -> None:
    """Say it once for each time that it is so, as long as this runs.

    `voters` vote on the metadata; `wait_more` waits until the metadata have changed.
    """

    def is_leaving() -> bool:
        return state().wishes.broker_state(own) is BrokerState.DECOMMISSIONING

    while True:
        while not is_leaving():
            await wait_more()
        while is_leaving() and (own in voters() or _holds(state(), own)):  # noqa: ASYNC110  # who votes is no change of the metadata
            await trio.sleep(LOOK_SECONDS)
        if is_leaving():
            logger.warning(
                "broker %d has been decommissioned and holds nothing any more: stop it, and the "
                "cluster forgets it some seconds later; `tidemark broker decommission %d --cancel` "
                "keeps it",
                own,
                own,
            )
        while is_leaving():
            await wait_more()


def _holds(state: ClusterState, node: NodeId) -> bool:
    """Whether it has a replica, an observer too, or is to get one or to give one up."""
    return state.load.replicas[node] > 0 or any(
        node in held
        for topic in state.topics.values()
        for others in (topic.wanted, topic.leaving, topic.observers)
        for held in others.values()
    )
