"""Who another broker is, and where: by the cluster's metadata, and by what it says itself."""

from __future__ import annotations

from tidemark.broker.peers.hello import HostPort, Peer, Sighting, judge_sighting
from tidemark.protocol.types import NodeId


class Whereabouts:
    """Of one broker. It may know of nothing: then anybody may be that broker, anywhere."""

    __slots__ = ("_node", "_target", "said_address", "seen")

    def __init__(self, node: NodeId) -> None:
        self.seen: Sighting | None = None
        """The newest life of it that a connection has led to, or come from."""
        self.said_address: HostPort | None = None
        """Where it says itself that it is: after a move, newer than what the cluster knows."""
        self._node = node
        self._target: Peer | None = None  # None for a broker that only comes to us

    @property
    def known(self) -> Sighting | None:
        """Whom a connection must lead to, or come from; `None` for anybody."""
        target = self._target
        if self.seen is None and target is not None and target.directory_id is not None:
            return Sighting(target.directory_id, 0)
        return self.seen

    @property
    def addresses(self) -> list[HostPort]:
        """Where it may be, the likeliest first."""
        known = [] if self._target is None else [self._target.address]
        said = self.said_address
        return known if said is None else [said, *(each for each in known if not _same(each, said))]

    def is_known_as(self, seen: Sighting) -> bool:
        """Whether that is the very broker that is known; not if none is."""
        known = self.known
        return known is not None and judge_sighting(self._node, seen, known) is None

    def aim(self, target: Peer) -> bool:
        """Where the cluster has it from now on; returns whether it had it elsewhere before."""
        before, self._target = self._target, target
        has_moved = before is not None and not _same(before.address, target.address)
        if has_moved:
            self.said_address = None
        return has_moved

    def forget_replaced(self) -> bool:
        """Whether the cluster has it with another data directory than it was seen with; what was
        seen counts no more then."""
        target, seen = self._target, self.seen
        if target is None or seen is None or target.directory_id in (None, seen.directory_id):
            return False
        self.seen = None
        return True


def _same(one: HostPort, other: HostPort) -> bool:
    return (one.host, one.port) == (other.host, other.port)
