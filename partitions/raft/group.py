"""One replica of one group: events in, `Ready` out.

The roles are classes of their own, and each holds only what dies with it. Who is a follower now and
a leader later is this `Group`; what it holds all along is in `replica.py`. There is no timer here:
whoever owns the group says when to campaign, when to look at the quorum and what to try again.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from tidemark.partitions.raft.candidate import Candidate, Plan, PreCandidate
from tidemark.partitions.raft.entries import UNVERSIONED
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    HardState,
    Message,
    Opened,
    PullRequest,
    PullResponse,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.raft.observer import Observer, answer_pull
from tidemark.partitions.raft.ports import Limits, Peers, ReadEntries
from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.raft.ready import Outgoing, Ready
from tidemark.partitions.raft.replica import NOWHERE, Replica
from tidemark.partitions.raft.returning import may_elect
from tidemark.partitions.raft.voting import answer_vote_request
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

__all__ = ["Group", "Limits", "NodeProgress", "Peers", "ReadEntries", "Role"]

Role: TypeAlias = Follower | PreCandidate | Candidate | Leader | Observer


class Group(Replica):
    """A replica with its role. No event raises over what a peer has sent.

    Drain it after events: `while group.has_ready: ready = group.take_ready()`.
    """

    __slots__ = ("role",)

    def __init__(
        self,
        *,
        node_id: NodeId,
        shape: LogShape,
        hard_state: HardState,
        committed: Offset,
        read: ReadEntries,
        peers: Peers,
        limits: Limits,
        is_clean: bool = True,
        life: int = 0,
        in_doubt: bool = False,
        left_in: Epoch | None = None,
    ) -> None:
        super().__init__(
            node_id=node_id,
            shape=shape,
            hard_state=hard_state,
            committed=committed,
            read=read,
            peers=peers,
            limits=limits,
            is_clean=is_clean,
            life=life,
            in_doubt=in_doubt,
            left_in=left_in,
        )
        self.role: Role = Follower()

    @property
    def is_voter(self) -> bool:
        return self.node_id in self.config.members

    @property
    def successor(self) -> NodeId | None:
        """To whom the lead is being handed over."""
        return self.role.successor if isinstance(self.role, Leader) else None

    @property
    def is_accepting(self) -> bool:
        """Whether it leads and means to go on: what is appended during a hand-over may be lost."""
        return isinstance(self.role, Leader) and self.role.successor is None

    @property
    def has_in_flight(self) -> bool:
        """Whether it waits for an answer of a live peer, and must be helped if none comes."""
        match self.role:
            case Leader() as leader:
                return leader.has_in_flight(self)
            case PreCandidate() | Candidate():
                return True
            case Observer() as observer:
                return observer.is_waiting
            case _:
                return False

    # Events

    def campaign(self, *, is_migration: bool = False) -> None:
        """Try to become leader. A candidate begins a new attempt.

        `is_migration`: the leader has asked for it, so there is no pre-vote, and voters that hear
        that leader listen all the same. Nothing happens in a leader, or without a vote.
        """
        if self.failure is not None or not self.is_voter:
            return
        if self.in_doubt and (is_migration or self.config.members == (self.node_id,)):
            # It may have forgotten epochs, and learns them by a pre-vote: which a migration leaves
            # out, and which asks nobody where this is the only voter.
            mark("campaign_in_doubt")
            return
        if not may_elect(self, self.shape.last):
            return
        if isinstance(self.role, Leader | Observer):
            return
        if isinstance(self.role, Candidate) and not self.is_hard_state_durable:
            mark("campaign_not_begun_yet")  # its requests have not left: a new epoch gains nothing
            return
        if is_migration:
            self.stand(Ballot.MIGRATION)
            return
        self.leader = None
        self.role = PreCandidate()
        self.has_ready = True
        self.role.start(self)

    def withdraw(self) -> None:
        """Somebody else is to be elected: end a pre-vote that is under way."""
        if isinstance(self.role, PreCandidate):
            self.role = Follower()

    def receive(self, source: NodeId, message: Message) -> None:
        """A message of another replica of this group."""
        if self.failure is not None:
            return
        match message:
            case AppendResponse():
                if message.epoch > self.epoch:
                    self.adopt(message.epoch)
                elif message.epoch < self.epoch:
                    mark("stale_answer")
                elif isinstance(self.role, Leader):
                    self.role.acknowledged(self, source, message)
            case AppendRequest() | ResetRequest():
                self._receive_entries(source, message)
            case VoteRequest():
                answer_vote_request(self, source, message)
            case VoteResponse():
                if message.granted:
                    if isinstance(self.role, PreCandidate | Candidate):
                        self.role.count(self, source, message)
                elif message.epoch > self.epoch:
                    self.adopt(message.epoch)
            case HandOver():
                if message.epoch == self.epoch and self.leader == source:
                    self.campaign(is_migration=True)
                else:
                    mark("stale_hand_over")
            case Opened():
                self._speak_again_to(source)
            case PullRequest():
                answer_pull(self, source, message)
            case PullResponse():
                if isinstance(self.role, Observer):
                    self.role.take(self, message)
            case _:
                assert_never(message)

    def heard_leader(self, leader: NodeId, epoch: Epoch, committed: Position) -> None:
        """A heartbeat says that this node leads, and how far its log is committed."""
        if self.failure is not None or epoch < self.epoch or leader == self.node_id:
            return
        if epoch > self.epoch:
            self.adopt(epoch)
        if not self._accept_leader(leader):
            return
        if isinstance(self.role, Follower):
            self.role.hear_committed(self, committed)

    def leader_lost(self) -> None:
        """The leader's broker is dead, or has said that it no longer leads."""
        if self.leader is not None and not self.is_leader:
            self.follow(None)

    def check_quorum(self) -> None:
        """A leader that does not hear a majority of the voters gives up the lead.

        One that does tries again what it has to finish and could not: a change, a hand-over.
        """
        if isinstance(self.role, Leader):
            self.role.check_quorum(self)

    def peer_reset(self, node: NodeId) -> None:
        """What is in flight to that node is lost, or is not answered: begin again with it."""
        if isinstance(self.role, Leader):
            self.role.restart(self, node)

    def peer_restarted(self, node: NodeId) -> None:
        """That node has another process now, whose replica says when it is open (`Opened`).

        As `peer_reset`, but a group at rest says nothing before that.
        """
        if isinstance(self.role, Leader):
            self.role.restart(self, node, can_wait=True)

    def appended(self, end_offset: Offset, *, is_durable: bool = False) -> None:
        """Whole batches of this leader's epoch are written, up to there."""
        assert isinstance(self.role, Leader)
        self.role.appended(self, end_offset, is_durable=is_durable)

    def persisted(self, token: int) -> None:
        """What was to be written up to the `Ready` with this token is durable."""
        self.note_durable(token)
        if self.failure is None:
            self.role.persisted(self)

    def trim(self, start_offset: Offset) -> None:
        """The log begins later now. Only what is committed can be given up."""
        assert start_offset <= self.committed.offset
        self.shape.trim(start_offset)

    def add_learner(self, node: NodeId) -> None:
        """Send that node the log; it has no vote. Nothing happens if this is not the leader."""
        if isinstance(self.role, Leader):
            self.role.add_learner(self, node)

    def allow(self, node: NodeId, more_bytes: int | None) -> None:
        """Let a learner be sent so many bytes of records more; then it waits for the next call.

        `None` lifts the limit. There is none for whom this was never called.
        """
        if isinstance(self.role, Leader):
            self.role.allow(self, node, more_bytes)

    def remove_learner(self, node: NodeId) -> None:
        if isinstance(self.role, Leader):
            self.role.remove_learner(self, node)

    def change_config(self, voters: tuple[NodeId, ...], version: int = UNVERSIONED) -> None:
        """Begin to go over to these voters, all of them caught up (Raft §6, at epoch starts).

        `version` is the metadata's at which they were wished. The same voters at a newer one take
        an epoch, too: nobody who leads after that goes back to an earlier wish.

        Raises `RequestError` if this is not the leader, or a change may not begin. If another
        replica becomes leader on the way, it finishes the change or has never heard of it: its
        configuration tells which.
        """
        self._leader().change_config(self, voters, version)

    def hand_over(self, to: NodeId) -> None:
        """Make `to` the leader once it has everything. Raises `RequestError` if it cannot be."""
        self._leader().hand_over(self, to)

    def abort_hand_over(self) -> None:
        """The hand-over takes too long: go on leading."""
        if isinstance(self.role, Leader):
            self.role.abort_hand_over()

    def step_down(self) -> None:
        """Stop leading, in favour of nobody."""
        if isinstance(self.role, Leader):
            self.follow(None)

    def observe(self) -> None:
        """From now on pull what is committed, without a vote."""
        if not isinstance(self.role, Observer):
            self.leader = None
            self.role = Observer()
            self.has_ready = True

    def next_pull(self, parent: NodeId) -> Outgoing:
        """What an observer asks that parent."""
        assert isinstance(self.role, Observer)
        return self.role.next_pull(self, parent)

    # Answers

    def held_by(self, count: int) -> Position:
        """The highest position that so many voters hold durably, as the leader knows it."""
        return self.role.held_by(self, count) if isinstance(self.role, Leader) else NOWHERE

    def waits_for(self) -> frozenset[NodeId]:
        """The nodes that a leader has sent something, or has to, and that have not answered."""
        return self.role.waits_for(self) if isinstance(self.role, Leader) else frozenset()

    def holding(self, position: Position) -> list[NodeId]:
        """The others that hold all up to a position, as the leader knows it."""
        return self.role.holding(position) if isinstance(self.role, Leader) else []

    def progress(self) -> tuple[NodeProgress, ...]:
        """How far the others are, as the leader knows it; empty in any other role."""
        return self.role.progress(self) if isinstance(self.role, Leader) else ()

    def take_ready(self) -> Ready:
        """The next thing to do; only to be asked for while `has_ready`."""
        if isinstance(self.role, Leader):
            self.role.replicate(self)
        return self.take()

    # For the roles

    def adopt(self, epoch: Epoch) -> None:
        """Another replica is in a later epoch: so is this one, and it does not know who leads."""
        self.set_hard_state(epoch, None)
        self.leader = None
        if not isinstance(self.role, Observer):
            self.role = Follower()

    def follow(self, leader: NodeId | None) -> None:
        """In this epoch, that node leads; or nobody that is known."""
        self.leader = leader
        self.has_ready = True
        if not isinstance(self.role, Observer | Follower):
            self.role = Follower()

    def stand(self, ballot: Ballot, plan: Plan | None = None) -> None:
        """Ask for votes in the next epoch."""
        self.role = Candidate(ballot, plan)
        self.role.start(self)

    def lead(self, plan: Plan | None, *, may_have_lost: bool) -> None:
        """Elected: open the epoch."""
        self.role = Leader(may_have_lost=may_have_lost)
        self.role.start(self, plan)

    def _receive_entries(self, source: NodeId, request: AppendRequest | ResetRequest) -> None:
        if request.epoch < self.epoch:
            mark("stale_request")
            prev = request.prev if isinstance(request, AppendRequest) else request.start
            self.answer(source, self.response(prev, None))
            return
        if request.epoch > self.epoch:
            self.adopt(request.epoch)
        if not self._accept_leader(source):
            return
        if not isinstance(self.role, Follower):  # an observer that becomes a learner
            self.role = Follower()
        if isinstance(request, AppendRequest):
            self.role.append(self, source, request)
        else:
            self.role.reset(self, source, request)

    def _speak_again_to(self, node: NodeId) -> None:
        """What was said to that node is lost: its replica was not there."""
        match self.role:
            case Leader() as leader:
                leader.restart(self, node)
            case PreCandidate() | Candidate() as candidate:
                candidate.ask_again(self, node)
            case _:
                mark("opened_told_to_who_cannot_lead")

    def _accept_leader(self, node: NodeId) -> bool:
        """Whether that node can be this epoch's leader; it is followed then."""
        if self.leader is None:
            self.follow(node)
        elif self.leader != node:
            mark("two_leaders_in_an_epoch")
            return False
        return True

    def _leader(self) -> Leader:
        if not isinstance(self.role, Leader):
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this replica does not lead")
        return self.role
