"""How a broker ends: in order, or because its disk has failed.

In order means that clients are answered what they asked by then, and that the disk is waited for,
but not for ever: neither for answers that may never come nor for a disk that takes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from tidemark.broker.network.connections import Connections
from tidemark.broker.node import Node
from tidemark.broker.parts import Parts
from tidemark.broker.peers.network import PeerNetwork
from tidemark.partitions.storage.refusals import why_it_ended
from tidemark.protocol.errors import StorageError

STOP_DISK_SECONDS: Final = 10.0
"""Once clients are answered, so long is waited for what the disk still has to take."""
NOTICE_SECONDS: Final = 0.2
"""So long the other brokers have to elect who leads in place of this one, before its clients ask
them: some ask once, at once, and then not for seconds."""


async def stop_serving(
    parts: Parts, node: Node, peers: PeerNetwork, connections: Connections
) -> None:
    """Answer what has come and take no more, within `stop.timeout.ms`; hang up on everybody.

    On the other brokers first. What is led here is led by others then while the logs are put away,
    which may take long, and a client that asks who leads is not sent back here.
    """
    parts.readiness.stopping()
    with trio.move_on_after(parts.settings.stop_timeout_ms / 1000, shield=True):
        await _drain(parts, node, connections)
    is_missed = bool(peers.up)
    parts.turn.run(peers.close)
    if is_missed and len(connections):
        with trio.CancelScope(shield=True):
            await trio.sleep(NOTICE_SECONDS)
    parts.turn.run(connections.close)
    await _give_up_a_full_disk(node)


async def _drain(parts: Parts, node: Node, connections: Connections) -> None:
    connections.stop_accepting()
    connections.stop_reading()
    has_failed = node.disk.error is not None or parts.tasks.cancel_scope.cancel_called
    if not has_failed:
        parts.turn.run(partial(release_waiting, node))
        await connections.wait_drained()


def release_waiting(node: Node) -> None:
    """Answer the requests that wait for something that may never come."""
    node.coordinator.resign()
    node.transactions.resign()
    node.verifier.resign()
    for topic in node.topics:
        for replica in topic.replicas:
            replica.release_fetches()


async def _give_up_a_full_disk(node: Node) -> None:
    """A disk without room is waited for as long as the broker runs, and not when it is to end:
    whoever saves what is left would wait with it, shielded."""
    with trio.move_on_after(STOP_DISK_SECONDS, shield=True) as waiting:
        await node.disk.wait_durable(node.disk.newest)
    if waiting.cancelled_caught:
        node.disk.fail(_NotTaken())


def fail_stop(parts: Parts) -> Callable[[OSError], None]:
    """What to do when the disk has failed: end the broker, for nothing is known about the disk."""

    async def raise_it(error: OSError) -> None:
        if isinstance(error, _NotTaken):
            raise StorageError(
                f"{parts.settings.data_dir} has not taken what was left in {STOP_DISK_SECONDS:.0f} "
                "seconds. Is it full? What was acknowledged is kept; a start needs room on it"
            ) from error
        raise StorageError(why_it_ended(error, str(parts.settings.data_dir))) from error

    return lambda error: parts.tasks.start_soon(raise_it, error)


class _NotTaken(OSError):
    """What was to be written when the broker stopped."""
