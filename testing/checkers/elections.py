"""One leader an epoch, one vote an epoch, and epochs that never go back."""

from tidemark.partitions.raft.messages import HardState
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId
from tidemark.testing.checkers.violation import Violation, require


class Elections:
    """What one group's nodes have said and written about epochs.

    `durable` is told of each hard state that has reached a disk, and knows for each node and
    epoch whom it voted for; a vote that is said must be one of these.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._leaders: dict[Epoch, NodeId] = {}
        self._votes: dict[tuple[NodeId, Epoch], NodeId] = {}
        self._durable: dict[NodeId, Epoch] = {}
        self._current: dict[NodeId, Epoch] = {}
        self._told_to_lead: set[tuple[NodeId, Epoch]] = set()
        """By the leader of that epoch."""
        self._forgotten: dict[NodeId, Epoch] = {}
        """Up to which epoch a node's disk may lack votes that it had given."""

    @property
    def epoch_max(self) -> Epoch:
        return max(self._leaders, default=NO_EPOCH)

    def durable_epoch(self, node: NodeId) -> Epoch:
        """The newest epoch that the node's disk has."""
        return self._durable.get(node, NO_EPOCH)

    def leads(self, node: NodeId, epoch: Epoch) -> None:
        """The node acts as the epoch's leader."""
        leader = self._leaders.setdefault(epoch, node)
        if leader != node:
            what = f"{leader} and {node} both lead epoch {epoch}"
            raise Violation("one leader an epoch", self._group, what)

    def hands_over(self, to: NodeId, epoch: Epoch) -> None:
        """The leader of that epoch wants this node to lead the next one."""
        self._told_to_lead.add((to, epoch))

    def is_told_to_lead(self, node: NodeId, epoch: Epoch) -> bool:
        """Whether the leader of that epoch has wanted the node to lead the next one."""
        return (node, epoch) in self._told_to_lead

    def is_anybody_told_to_lead(self, epoch: Epoch) -> bool:
        """Whether the leader of that epoch has wanted another to lead the next one."""
        return any(told == epoch for _, told in self._told_to_lead)

    def asks_past_a_leader(self, node: NodeId, epoch: Epoch) -> None:
        """The node asks for votes that are given though a leader lives.

        That leader has to want it: it is the node itself, or has told it to lead. Else whoever
        heeds what was said long ago deposes a leader that nothing is wrong with.
        """
        before = Epoch(epoch - 1)
        is_wanted = self.is_told_to_lead(node, before) or self._leaders.get(before) == node
        what = f"{node} asks for votes in epoch {epoch}, and is not wanted by who led {before}"
        require(is_wanted, "a live leader is followed only by whom it wants", self._group, what)

    def runs_at(self, node: NodeId, epoch: Epoch) -> None:
        """The node's own epoch, at any time while it runs."""
        before = self._current.get(node, NO_EPOCH)
        if epoch < before:
            what = f"{node} went from epoch {before} to {epoch}"
            raise Violation("epochs never go back", self._group, what)
        self._current[node] = epoch

    def durable(self, node: NodeId, state: HardState) -> None:
        """The node's disk holds this from now on."""
        before = self._durable.get(node, NO_EPOCH)
        what = f"{node} wrote epoch {state.epoch} after {before}"
        require(state.epoch >= before, "durable epochs never go back", self._group, what)
        self._durable[node] = state.epoch
        if state.voted_for is not None:
            vote = self._votes.setdefault((node, state.epoch), state.voted_for)
            what = f"{node} voted for {vote} and {state.voted_for} in epoch {state.epoch}"
            require(vote == state.voted_for, "one vote an epoch", self._group, what)

    def says_vote(self, node: NodeId, epoch: Epoch, candidate: NodeId) -> None:
        """The node grants a vote that binds it: its disk must have that, or a later epoch, in
        which it can no longer be given to another."""
        if self.durable_epoch(node) > epoch:
            self._votes.setdefault((node, epoch), candidate)
        vote = self._votes.get((node, epoch))
        what = f"{node} told {candidate} of a vote in epoch {epoch}; its disk has {vote}"
        require(vote == candidate, "a vote is durable before it is said", self._group, what)

    def has_voted(self, node: NodeId, since: Epoch) -> bool:
        """Whether the node has given its vote away in that epoch, or in a later one."""
        return any(voter == node and epoch >= since for voter, epoch in self._votes)

    def says_epoch(self, node: NodeId, epoch: Epoch) -> None:
        """The node acknowledges entries in an epoch: it must have the epoch on its disk."""
        before = self._durable.get(node, NO_EPOCH)
        if before < epoch:
            what = f"{node} acknowledged in epoch {epoch}; its disk has {before}"
            raise Violation("an epoch is durable before it is said", self._group, what)

    def forgets(self, node: NodeId) -> None:
        """The node's disk may lose all of the group but its epoch. What it has voted is remembered
        here."""
        at = max(self.durable_epoch(node), self._forgotten.get(node, NO_EPOCH))
        self._forgotten[node] = at
        self._current.pop(node, None)

    def loses_newest(self, node: NodeId, kept: HardState) -> None:
        """The node's disk has lost newer epochs and votes. What binds it is not known here: who has
        won with the vote that was lost, or with another, leads alone."""
        self._durable[node] = kept.epoch
        lost = [key for key in self._votes if key[0] == node and key[1] >= kept.epoch]
        for key in lost:
            del self._votes[key]

    def restarts(self, node: NodeId, state: HardState) -> None:
        """The node comes back with this hard state."""
        before = self._durable.get(node, NO_EPOCH)
        what = f"{node} came back with epoch {state.epoch}; its disk had {before}"
        require(state.epoch >= before, "durable epochs never go back", self._group, what)
        self._current[node] = NO_EPOCH
        self.durable(node, state)
        if state.voted_for is None and state.epoch <= self._forgotten.get(node, NO_EPOCH):
            return  # it began anew in that epoch; it may not vote otherwise in it
        vote = self._votes.get((node, state.epoch))
        what = f"{node} came back with a vote for {state.voted_for}; its disk had {vote}"
        require(vote == state.voted_for, "a vote survives", self._group, what)
