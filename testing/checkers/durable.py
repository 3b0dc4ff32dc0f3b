"""What each replica of a group has on its disk, and what may be said because of it."""

from collections.abc import Collection

from tidemark.partitions.raft.entries import Configuration
from tidemark.protocol.types import Epoch, NodeId, Position
from tidemark.testing.checkers.beliefs import holds
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import Violation, require


class DurableLogs:
    """The logs of one group as the disks have them."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._logs: dict[NodeId, Lineage] = {}
        self._written: dict[NodeId, list[Lineage]] = {}
        self._configs: dict[Epoch, Configuration] = {}

    def of(self, node: NodeId) -> Lineage:
        return self._logs.setdefault(node, Lineage())

    def check_committed(
        self,
        node: NodeId,
        config: Configuration,
        position: Position,
        *,
        damaged: Collection[NodeId] = (),
    ) -> None:
        """A leader calls a position committed: a majority must have it on their disks.

        Those that are `damaged` may have had it when they said so, and elect nobody before they
        have it again. A leader that is damaged itself has said nothing to anybody: it is counted
        only where all have it.
        """
        holders = {n for n in config.members if n in damaged or self.of(n).contains(position)}
        counted = holders - {node} if node in damaged else holders
        if not config.agreed(counted.__contains__) and holders != {*config.members}:
            what = f"{node} commits {position} for {config}; on disk at {sorted(counted)}"
            raise Violation("a majority has on disk what is committed", self._group, what)

    def opens(self, epoch: Epoch, config: Configuration) -> None:
        """A leader begins an epoch, and these are to vote from then on."""
        self._configs[epoch] = config

    def check_safe(self, node: NodeId, first: Configuration, position: Position) -> None:
        """A leader calls a position committed: no election may lose it, whoever dies now.

        That is, nobody who lacks it has a log that a majority would vote for (Raft's figure 8): of
        those whom its own log has voting, which are the `first` ones where it has no epoch yet.
        """
        for candidate, log in list(self._logs.items()):
            config = self._configs.get(log.last.epoch, first)
            if candidate not in config.members or holds(log, position):
                continue
            last = log.last
            voters = {n for n in config.members if self.of(n).last <= last}
            if config.agreed(voters.__contains__):
                what = f"{node} commits {position}; {candidate} lacks it, and {voters} may elect it"
                raise Violation("no election may lose what is committed", self._group, what)

    def check_told_to_lead(self, leader: NodeId, successor: NodeId, last: Position) -> None:
        """A leader whose log ends there gives up the lead to another, who must have all of that on
        its disk: else it loses the election, and nobody leads meanwhile."""
        if not holds(self.of(successor), last):
            what = f"{leader} at {last} hands over to {successor}, which has {self.of(successor)}"
            raise Violation("who is told to lead has everything", self._group, what)

    def says_match(self, node: NodeId, match: Position) -> None:
        """A follower acknowledges a position: it must have it on its disk, or had.

        A reset that came between the answer and its sending leaves nothing below the new start,
        and what lies there is committed.
        """
        if not holds(self.of(node), match):
            what = f"{node} acknowledged {match}; its disk has {self.of(node)}"
            raise Violation("an entry is durable before it is acknowledged", self._group, what)

    def restarts(self, node: NodeId, log: Lineage) -> None:
        """A node comes back with this log: all that its disk had must be in it.

        What was written and not synced may have reached the disk too, a part of it or all: then
        a truncation in it has taken effect.
        """
        ends = [self.of(node).last, *(after.last for after in self._written.pop(node, ()))]
        what = f"{node} came back with {log}; its disk had {self.of(node)}, and then {ends[1:]}"
        is_there = any(map(log.contains, ends))
        require(is_there, "what was durable survives", self._group, what)
        self._logs[node] = log.copy()

    def forgets(self, node: NodeId) -> None:
        """A node may lose its log."""
        self._logs.pop(node, None)
        self._written.pop(node, None)

    def written(self, node: NodeId, after: Lineage) -> None:
        """A node has written a cut of its log, and not synced it: its log would be `after`."""
        self._written.setdefault(node, []).append(after)

    def synced(self, node: NodeId) -> None:
        """All that was written is on the disk."""
        self._written.pop(node, None)
