"""The replica that appends: it sends its log to the others and finds out what is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.candidate import Plan
from tidemark.partitions.raft.doubt import doubted, end_doubts, held_by_all, needs_an_entry
from tidemark.partitions.raft.entries import Configuration, epoch_start
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.membership import begin_change, plan_for, refused
from tidemark.partitions.raft.messages import AppendResponse, Ballot, HandOver
from tidemark.partitions.raft.progress import NodeProgress, Progress
from tidemark.partitions.raft.quorum import held_by, held_by_majority
from tidemark.partitions.raft.sending import send_what_is_lacking
from tidemark.protocol.types import NodeId, Offset, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


class Leader:
    """One replica in an epoch that it was elected in, from its `EpochStart` on."""

    __slots__ = (
        "_before",
        "_former",
        "_has_doubts",
        "_progress",
        "_start",
        "_successor_told",
        "may_have_lost",
        "successor",
    )

    def __init__(self, *, may_have_lost: bool) -> None:
        self._progress: dict[NodeId, Progress] = {}
        # Elected by all voters because not enough were clean: what is here is the best there is.
        self.may_have_lost = may_have_lost
        self.successor: NodeId | None = None
        self._successor_told = False
        self._has_doubts = False  # whether a replica is in doubt (`doubt.py`), perhaps this one

    def start(self, group: Group, plan: Plan | None) -> None:
        plan = plan or Plan(group.shape.config, learners=())
        before = group.shape.last
        group.leader = group.node_id
        group.is_clean = not group.in_doubt  # by being elected: nobody has more that counts
        start = epoch_start(group.epoch, before.offset, group.node_id, plan.config)
        group.write([start])
        self._before, self._start = before, start
        self._former = plan.former
        for node in (*plan.config.members, *plan.learners):
            if node != group.node_id:
                self._progress[node] = Progress(before)
        for node, life in plan.doubts:
            if node in self._progress:
                self._progress[node].held.begin_doubt(life, before)
        self._has_doubts = group.in_doubt or bool(plan.doubts)

    def appended(self, group: Group, end_offset: Offset, *, is_durable: bool) -> None:
        group.extend(end_offset, is_durable=is_durable)
        if self._progress:
            group.has_ready = True
        if is_durable:
            self._commit(group)

    def persisted(self, group: Group) -> None:
        self._commit(group)

    def acknowledged(self, group: Group, source: NodeId, response: AppendResponse) -> None:
        """A follower has answered, in this epoch."""
        progress = self._progress.get(source)
        if progress is None:
            mark("answer_of_a_stranger")
            return
        shape = group.shape
        if not progress.hear(response, shape.last):
            return
        if progress.held.doubted_at is not None:
            self._has_doubts = True
        match = response.match
        if match is not None:
            if not shape.contains(match) and match > shape.start:
                mark("bad_match")
                return
            if progress.succeeded(response.prev, match):
                if self.successor == source:
                    self._hand_over_when_ready(group)
                self._commit(group)
        elif response.conflict is not None:
            progress.refused(response, response.conflict, shape)
        if group.is_leader and progress.wants(shape.last):
            group.has_ready = True

    def replicate(self, group: Group) -> None:
        """Send each follower what it lacks, as far as its window allows."""
        send_what_is_lacking(group, self._progress, self._before, self._start)

    def restart(self, group: Group, node: NodeId, *, can_wait: bool = False) -> None:
        """What is in flight to this node is lost: begin again with it. With `can_wait` only when
        there is something to send, if nothing here depends on its answer."""
        progress = self._progress.get(node)
        if progress is None:
            return
        progress.restart()
        if self.successor == node:
            self._successor_told = False
            self._hand_over_when_ready(group)
        if not can_wait or not self._is_at_rest(group):
            group.has_ready = True

    def _is_at_rest(self, group: Group) -> bool:
        """Whether nothing here waits for an answer: to commit, to hand over, to end a doubt."""
        return (
            group.committed == group.shape.last
            and self.successor is None
            and not self._has_doubts
            and not group.config.is_joint
        )

    def has_in_flight(self, group: Group) -> bool:
        """Whether a live node has not answered, or is in a doubt that is to be ended."""
        is_alive = group.peers.is_alive
        return any(map(is_alive, self.waits_for(group))) or (
            self._has_doubts and any(map(is_alive, doubted(self._progress)))
        )

    def waits_for(self, group: Group) -> frozenset[NodeId]:
        """Those that have to answer, or to be sent something."""
        last = group.shape.last
        return frozenset(
            node
            for node, progress in self._progress.items()
            if progress.has_in_flight or progress.wants(last)
        )

    def holding(self, position: Position) -> list[NodeId]:
        return [node for node, each in self._progress.items() if each.held.match >= position]

    def progress(self, group: Group) -> tuple[NodeProgress, ...]:
        voters = group.config.members
        return tuple(
            each.seen(node, is_voter=node in voters) for node, each in self._progress.items()
        )

    # What is committed

    def held_by(self, group: Group, count: int) -> Position:
        """The highest position that `count` voters hold durably; on each side of a joint change."""
        return held_by(group, self._progress, count)

    def _commit(self, group: Group) -> None:
        """Raft §5.3, §5.4.2: by majority, of what is durable, and only at entries of this epoch."""
        held = held_by_majority(group, self._progress)
        if self._has_doubts:
            held = max(held, held_by_all(group, self._progress))
        if held > group.committed and held.epoch == group.epoch:
            was_serving = group.is_serving
            group.commit_to(held)
            if self._has_doubts:
                self._has_doubts = end_doubts(group, self._progress)
            if not was_serving:
                for node in self._former:  # as learners, until they are removed
                    self.add_learner(group, node)
                self.advance_change(group)

    # Membership, and giving up the lead

    def add_learner(self, group: Group, node: NodeId) -> None:
        if node != group.node_id and node not in self._progress:
            progress = self._progress[node] = Progress(group.shape.last)
            progress.has_come = True
            group.has_ready = True

    def allow(self, group: Group, node: NodeId, more_bytes: int | None) -> None:
        progress = self._progress.get(node)
        if progress is not None:
            progress.allow(None if node in group.config.members else more_bytes)
            group.has_ready = True

    def remove_learner(self, group: Group, node: NodeId) -> None:
        if node not in group.config.members:
            self._progress.pop(node, None)

    def change_config(self, group: Group, voters: tuple[NodeId, ...], version: int) -> None:
        """Begin to go over to these voters. Raises `RequestError` if that may not begin now."""
        self._campaign_again(group, begin_change(group, self._progress, voters, version))

    def advance_change(self, group: Group) -> None:
        """Finish a joint configuration, whoever began it, once it is committed itself."""
        config = group.config
        if not config.is_joint or not group.is_serving or self.successor is not None:
            return
        if group.node_id in config.voters:
            mark("change_finished")
            self._campaign_again(group, Configuration(config.voters, version=config.version))
            return
        mark("leader_outside_the_new_voters")
        heirs = [node for node in config.voters if self._may_lead(group, node)]
        if heirs:
            self.hand_over(group, max(heirs, key=lambda node: self._progress[node].held.match))

    def _may_lead(self, group: Group, node: NodeId) -> bool:
        """Whether a follower can campaign, for all that is known of it."""
        return group.peers.is_alive(node) and self._progress[node].held.doubted_at is None

    def hand_over(self, group: Group, to: NodeId) -> None:
        """Nothing more is appended; once `to` has everything, it is told to campaign."""
        if to not in group.config.members or to == group.node_id:
            raise refused(f"node {to} cannot be the next leader")
        self.successor, self._successor_told = to, False
        self._hand_over_when_ready(group)

    def abort_hand_over(self) -> None:
        if self.successor is not None:
            mark("hand_over_aborted")
            self.successor = None

    def check_quorum(self, group: Group) -> None:
        """Step down without a live majority (dissertation §6.2); look after what is stuck."""
        if not group.config.agreed(group.peers.is_alive):
            mark("quorum_lost")
            group.step_down()
            return
        if self.successor is not None and not self._may_lead(group, self.successor):
            self.abort_hand_over()
        self.advance_change(group)
        self._append_for_doubts(group)

    def _append_for_doubts(self, group: Group) -> None:
        """Where nobody appends anything newer than the doubts, open an epoch: its start is."""
        config = group.config
        # The end of a joint change opens one anyway, if this leader is a voter then.
        opens_one_anyway = config.is_joint and group.node_id in config.voters
        is_free = group.is_serving and self.successor is None and not opens_one_anyway
        if self._has_doubts and is_free and needs_an_entry(group, self._progress):
            mark("epoch_for_doubts")
            self._campaign_again(group, group.config)

    def _hand_over_when_ready(self, group: Group) -> None:
        to = self.successor
        assert to is not None
        if not self._successor_told and self._progress[to].held.match == group.shape.last:
            group.send(to, HandOver(group.epoch))
            self._successor_told = True

    def _campaign_again(self, group: Group, config: Configuration) -> None:
        group.stand(Ballot.MIGRATION, plan_for(group, self._progress, config))
