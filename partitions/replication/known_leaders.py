"""Who leads which group, as the leaders themselves say in their heartbeats.

This is where clients are pointed, also for groups that this broker has no replica of. A broker
that dies costs no messages: what it leads is not believed while it is not alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from tidemark.partitions.replication.checking import is_within_reach
from tidemark.partitions.replication.peer_messages import GroupBeat
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, ORIGIN, Epoch, NodeId, Offset, Position


class KnownLeader(NamedTuple):
    """The newest epoch of a group that was heard of, and who leads it."""

    node: NodeId
    epoch: Epoch
    leads: bool
    """False once that node has said that it leads this epoch no more."""
    committed: Position
    log_start: Offset


# Made for every group with news, ten times a second: calling the class takes twice the time.
_known_leader: Final = partial(tuple.__new__, KnownLeader)

NOT_KNOWN: Final = KnownLeader(NodeId(-1), NO_EPOCH, False, ORIGIN, Offset(0))


class KnownLeaders:
    """For all groups of the cluster that were heard of."""

    def __init__(self) -> None:
        self._leaders: dict[PartitionKey, KnownLeader] = {}
        self._gone = set[PartitionKey]()
        """Those of them that did not exist when this was last asked."""

    def get(self, key: PartitionKey) -> KnownLeader:
        return self._leaders.get(key, NOT_KNOWN)

    def hear(self, source: NodeId, beat: GroupBeat) -> bool:
        """Take a leader's word; whether it changes who leads.

        Within an epoch, "no more" is final: a node that has resigned never leads that epoch again.
        """
        known = self._leaders.get(beat.key, NOT_KNOWN)
        if beat.epoch < known.epoch or (beat.epoch == known.epoch and beat.leads > known.leads):
            return False
        if not is_within_reach(beat.epoch, known.epoch):
            return False
        key, epoch, leads, committed, log_start = beat
        self._leaders[key] = _known_leader((source, epoch, leads, committed, log_start))
        return epoch != known.epoch or leads != known.leads

    def leads_no_more(self, node: NodeId, key: PartitionKey, epoch: Epoch) -> bool:
        """Whether `node` has said that it leads that epoch no more, or a later one had a leader."""
        known = self._leaders.get(key, NOT_KNOWN)
        if epoch == known.epoch:
            return known.node == node and not known.leads
        return epoch < known.epoch

    def led_by(self, node: NodeId) -> Iterator[tuple[PartitionKey, KnownLeader]]:
        for key, known in self._leaders.items():
            if known.node == node and known.leads:
                yield key, known

    def forget_process(self, node: NodeId) -> list[PartitionKey]:
        """The process that led these is gone: it has resigned from all of them."""
        keys = [key for key, _ in self.led_by(node)]
        for key in keys:
            self._leaders[key] = self._leaders[key]._replace(leads=False)
        return keys

    def remove(self, key: PartitionKey) -> None:
        self._leaders.pop(key, None)
        self._gone.discard(key)

    def heard_of(self) -> Sequence[PartitionKey]:
        """All groups, as of now."""
        return list(self._leaders)

    def forget_gone(
        self, keys: Iterable[PartitionKey], is_gone: Callable[[PartitionKey, KnownLeader], bool]
    ) -> None:
        """Forget those that are gone, and were when they were last among the keys: who leads a
        group that is deleted may have spoken of it once more, and was heard after that was known
        here."""
        for key in keys:
            known = self._leaders.get(key)
            if known is None or not is_gone(key, known):
                self._gone.discard(key)
            elif key in self._gone:
                self.remove(key)
            else:
                self._gone.add(key)
