"""A replica that wants to lead: first it asks whether it could win, then it asks for votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.doubt import NONE, Doubts
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import Ballot, VoteRequest, VoteResponse
from tidemark.partitions.raft.voting import Tally
from tidemark.protocol.types import Epoch, NodeId
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


@dataclass(frozen=True, slots=True)
class Plan:
    """What a leader that campaigns again wants its next epoch to begin with."""

    config: Configuration
    learners: tuple[NodeId, ...]
    doubts: Doubts = NONE
    former: tuple[NodeId, ...] = ()
    """Voters that leave with it. They are sent the new epoch only once its start is committed: one
    that alone held it earlier would not campaign, for it has no vote in it, and would refuse its
    vote to all who lack it."""


class PreCandidate:
    """Asks whether it would be voted for. Binds nobody, and its epoch stays.

    So a replica that was cut off comes back with the epoch it left with, and disturbs no leader.
    """

    __slots__ = ("_tally",)

    def __init__(self) -> None:
        self._tally = Tally()

    def start(self, group: Group) -> None:
        self._tally.add(group.node_id, is_clean=group.is_clean)
        if self._tally.is_won(group.config):
            group.stand(Ballot.REAL)
            return
        for voter in _others(group):
            self.ask_again(group, voter)

    def ask_again(self, group: Group, voter: NodeId) -> None:
        if voter in group.config.members:
            request = VoteRequest(Epoch(group.epoch + 1), Ballot.PRE, group.shape.last)
            group.send(voter, request)

    def count(self, group: Group, source: NodeId, response: VoteResponse) -> None:
        if response.ballot is not Ballot.PRE or response.epoch != group.epoch + 1:
            mark("stale_vote")
            return
        self._tally.add(source, is_clean=response.is_clean)
        if self._tally.is_won(group.config):
            group.stand(Ballot.REAL)

    def persisted(self, group: Group) -> None:
        """A pre-vote waits for nothing to become durable."""


class Candidate:
    """Asks for votes in an epoch that it has made its own.

    Requests leave, and its own vote counts, only when that is durable. A candidate that forgot its
    epoch could otherwise ask again for the same one with a shorter log, and win with the votes
    that the longer one was given.
    """

    __slots__ = ("_ballot", "_plan", "_tally")

    def __init__(self, ballot: Ballot, plan: Plan | None = None) -> None:
        self._tally = Tally()
        self._ballot = ballot
        self._plan = plan

    def start(self, group: Group) -> None:
        group.leader = None
        group.set_hard_state(Epoch(group.epoch + 1), group.node_id)
        for voter in _others(group):
            group.send_after(voter, self._request(group))

    def ask_again(self, group: Group, voter: NodeId) -> None:
        # Before, the first request has not left.
        if group.is_hard_state_durable and voter in group.config.members:
            group.send(voter, self._request(group))

    def _request(self, group: Group) -> VoteRequest:
        return VoteRequest(group.epoch, self._ballot, group.shape.last)

    def count(self, group: Group, source: NodeId, response: VoteResponse) -> None:
        if response.ballot is Ballot.PRE or response.epoch != group.epoch:
            mark("stale_vote")
            return
        self._tally.add(source, is_clean=response.is_clean)
        self._lead_if_elected(group)

    def persisted(self, group: Group) -> None:
        if group.is_hard_state_durable:
            self._tally.add(group.node_id, is_clean=group.is_clean)
            self._lead_if_elected(group)

    def _lead_if_elected(self, group: Group) -> None:
        # One that hears no majority any more would lead alone, and go on so: a leader looks after
        # its majority when it loses a peer, and these are lost already.
        if not group.config.agreed(group.peers.is_alive):
            mark("elected_by_who_is_lost")
            return
        if self._tally.is_clean_majority(group.config):
            group.lead(self._plan, may_have_lost=False)
        elif self._tally.is_everyone(group.config):
            mark("unclean_election")
            # With a plan it has led until now, and has all there is.
            group.lead(self._plan, may_have_lost=self._plan is None)


def _others(group: Group) -> list[NodeId]:
    return [voter for voter in group.config.members if voter != group.node_id]
