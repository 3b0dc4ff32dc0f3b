"""Whether the other brokers still count this one among the cluster's.

One that was away, or stood still, may have been removed meanwhile. Nobody connects to it any more,
so the metadata that say so do not reach it; all that it can go by is what its own Hellos are
answered with.
"""

import logging
from typing import Final

from tidemark.protocol.types import NodeId

_REMOVED: Final = (
    "broker %d was removed from the cluster while it was away (%s): it holds nothing that counts, "
    "and what it tells clients is out of date. Stop it. Started again, it registers anew, without "
    "replicas; to have it leave for good, do not start it again"
)

logger = logging.getLogger(__name__)


class Belonging:
    """What the links have been told, together. Says once in the log that this broker is out."""

    def __init__(self, own: NodeId) -> None:
        self._own = own
        self._is_registered = False
        self._up: set[NodeId] = set()
        self._strange_to: dict[NodeId, str] = {}
        self._is_said = False

    def registered(self) -> None:
        """From now on the others should know this broker."""
        self._is_registered = True

    def went_up(self, node: NodeId) -> None:
        """It connects to this broker, so it counts it among the cluster's."""
        self._up.add(node)
        self._strange_to.pop(node, None)
        self._is_said = False

    def went_down(self, node: NodeId) -> None:
        self._up.discard(node)
        self._look()

    def left(self, node: NodeId) -> None:
        """It does not belong to the cluster itself: what it knows does not count."""
        self._up.discard(node)
        self._strange_to.pop(node, None)

    def greeted(self, node: NodeId, reason: str) -> None:
        """It has taken a connection; with a reason if it knows of no such broker as this one."""
        if reason:
            self._strange_to[node] = reason
        else:
            self._strange_to.pop(node, None)
        self._look()

    def _look(self) -> None:
        """One that knows nothing of this broker may be late itself, as long as others do."""
        if self._is_registered and self._strange_to and not (self._up or self._is_said):
            self._is_said = True
            logger.error(_REMOVED, self._own, "; ".join(sorted(self._strange_to.values())))
