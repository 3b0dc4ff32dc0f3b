"""Votes: when one is given, and when those received are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import Ballot, VoteRequest, VoteResponse
from tidemark.partitions.raft.returning import may_elect
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


class Tally:
    """Who has granted a candidate its vote, and whether that voter was clean."""

    __slots__ = ("_granted",)

    def __init__(self) -> None:
        self._granted: dict[NodeId, bool] = {}

    def add(self, voter: NodeId, *, is_clean: bool) -> None:
        self._granted[voter] = is_clean

    def is_clean_majority(self, config: Configuration) -> bool:
        """It shares a voter with every majority that committed something, and that one has it."""
        return config.agreed(lambda voter: self._granted.get(voter, False))

    def is_everyone(self, config: Configuration) -> bool:
        """Then nobody has more than the candidate, even if some have lost what they had."""
        return all(voter in self._granted for voter in config.members)

    def is_won(self, config: Configuration) -> bool:
        return self.is_clean_majority(config) or self.is_everyone(config)


def answer_vote_request(group: Group, source: NodeId, request: VoteRequest) -> None:
    """Raft §5.2, §5.4.1; dissertation §4.2.3 and §9.6 for the pre-vote and for stickiness.

    Membership is not looked at: a candidate's configuration may be newer than the voter's (§4.1).
    Who has come back to the group asks for more: `returning.py`.
    """
    if request.ballot is Ballot.PRE:
        granted = (
            request.epoch > group.epoch
            and not _is_bound(group, source, request)
            and request.last >= group.shape.last
            and may_elect(group, request.last)
        )
        epoch = request.epoch if granted else group.epoch
        # It binds nobody, so nothing has to be durable.
        group.send(source, VoteResponse(epoch, Ballot.PRE, granted, group.is_clean))
    elif _is_bound(group, source, request):
        mark("vote_refused_for_a_live_leader")
        group.send(source, VoteResponse(group.epoch, request.ballot, False, group.is_clean))
    else:
        _answer_binding(group, source, request)
    # If this is the leader: the one that asks has not heard it, so it is spoken to.
    group.peer_reset(source)


def _answer_binding(group: Group, source: NodeId, request: VoteRequest) -> None:
    if request.epoch > group.epoch:
        group.adopt(request.epoch)
    granted = (
        request.epoch == group.epoch
        and group.voted_for in (None, source)
        and group.leader in (None, source)
        and request.last >= group.shape.last
        and may_elect(group, request.last)
    )
    if granted and group.voted_for is None:
        group.set_hard_state(group.epoch, source)
        group.follow(None)
    group.answer(source, VoteResponse(group.epoch, request.ballot, granted, group.is_clean))


def _is_bound(group: Group, source: NodeId, request: VoteRequest) -> bool:
    """Whether this voter hears a leader, and so listens to nobody else. One that asks for votes
    itself leads no more; one whom the leader has told to campaign is listened to."""
    return (
        request.ballot is not Ballot.MIGRATION
        and request.epoch > group.epoch
        and group.hears_leader(source)
    )
