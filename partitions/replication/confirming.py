"""Whether this broker still leads a group: asked of a majority, for reads that must not be stale.

The read index of Raft (dissertation §6.4). A leader that was cut off may be replaced and not know
it; what it has committed is right, and may not be all. So who wants all is answered only once

1. an entry of the leader's own epoch is committed: only then does it know what was committed
   before it;
2. a majority of the voters, asked after the question came, are in no later epoch. Whoever was
   elected in one by then had the vote of one of them;

and is answered with the high watermark as it was when the question came, or with a later one. A
voter counts only if it is *in* the leader's epoch: one that has begun anew with nothing, and is in
none, cannot know whom it voted for.

A round is one message to each broker for all groups that are asked about in a turn. A group has one
round under way; who comes meanwhile waits for the next one, which serves all of them. Nothing is
written, and a group that nobody asks about costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Final

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.checking import is_within_reach
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import ConfirmAnswer, ConfirmRound, GroupEpoch
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.protocol.values import dataclass

Confirmed = Callable[[Offset | RequestError], None]
"""Called once: with the high watermark, or with why this broker cannot say that it leads."""

_NEVER: Final = float("inf")
_COUNT_BITS: Final = 32


@dataclass(slots=True, eq=False)
class Question:
    """Somebody who waits to hear that this broker leads."""

    key: PartitionKey
    done: Confirmed
    high_watermark: Offset | None
    """When it came; `None`: it was not known then."""
    number: int = 0
    """The first round that counts for it; 0: none was sent since it came."""


@dataclass(slots=True)
class _Asked:
    """A group that is asked about."""

    epoch: Epoch
    questions: deque[Question] = field(default_factory=deque)
    """In the order of their coming, and so of their rounds."""
    answered: dict[NodeId, int] = field(default_factory=dict)
    """The newest round that each voter has answered, in the leader's epoch."""
    sent: int = 0
    """The newest round; it is under way while somebody waits for it."""
    due: float = _NEVER
    """When the round under way is taken for lost."""

    @property
    def is_under_way(self) -> bool:
        return bool(self.questions) and self.questions[0].number != 0


class Confirmations:
    """All that this broker is asked about, and the rounds that the others ask it in."""

    def __init__(
        self,
        node_id: NodeId,
        incarnation: int,
        timing: Timing,
        outbox: Outbox,
        replicas: Mapping[PartitionKey, GroupReplica],
    ) -> None:
        self._node_id = node_id
        self._timing = timing
        self._outbox = outbox
        self._replicas = replicas
        self._asked: dict[PartitionKey, _Asked] = {}
        self._unsent: dict[PartitionKey, None] = {}
        # What answers a round of this broker's last process answers none of this one's.
        self._number = incarnation << _COUNT_BITS
        self.rounds = 0
        """How many were sent since the start."""

    def __bool__(self) -> bool:
        return bool(self._asked)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._asked

    # Who asks

    def ask(self, key: PartitionKey, done: Confirmed) -> Question:
        """Have `done` called once it is certain that this broker leads; at once, perhaps."""
        replica = self._replicas.get(key)
        high_watermark = None
        if replica is not None and replica.is_serving:
            high_watermark = replica.high_watermark
        question = Question(key, done, high_watermark)
        if replica is None or not replica.is_leader:
            done(_not_leading(key))
            return question
        if high_watermark is not None and replica.group.config.agreed(self._is_me):
            done(high_watermark)  # there is nobody else
            return question
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = _Asked(replica.epoch)
        asked.questions.append(question)
        if not asked.is_under_way:
            self._unsent[key] = None
        return question

    def forget(self, question: Question) -> None:
        """Whoever asked waits no more."""
        asked = self._asked.get(question.key)
        if asked is not None and question in asked.questions:
            asked.questions.remove(question)
            if not asked.questions:
                self._drop(question.key)

    # Rounds

    def send(self, now: float) -> None:
        """At the end of a turn: one round for all groups that somebody has begun to ask about."""
        if self._unsent:
            unsent, self._unsent = self._unsent, {}
            self._send(unsent, now)

    def tick(self, now: float) -> None:
        """Ask again where a round was lost: who has come since may wait for the new one."""
        late = [key for key, asked in self._asked.items() if asked.due <= now]
        if late:
            self._send(dict.fromkeys(late), now)

    def next_deadline(self) -> float:
        return min((asked.due for asked in self._asked.values()), default=_NEVER)

    def _send(self, keys: Mapping[PartitionKey, None], now: float) -> None:
        self._number += 1
        by_node: dict[NodeId, list[GroupEpoch]] = {}
        for key in keys:
            asked, replica = self._asked.get(key), self._replicas.get(key)
            if asked is None or replica is None:
                continue
            asked.sent, asked.due = self._number, now + self._timing.confirm_again_seconds
            for question in asked.questions:
                question.number = question.number or self._number
            for node in replica.group.config.members:
                if node != self._node_id:
                    by_node.setdefault(node, []).append(GroupEpoch(key, asked.epoch))
            self._look(key, asked, replica)
        self.rounds += bool(by_node)
        for node, groups in by_node.items():
            self._outbox.send(node, ConfirmRound(self._number, tuple(groups)))

    def answer(self, source: NodeId, message: ConfirmRound) -> None:
        """Another broker asks: say in which epochs the replicas here are."""
        groups = []
        for key, _ in message.groups:
            replica = self._replicas.get(key)
            # One whose journal was damaged may have forgotten whom it has voted for.
            if replica is not None and replica.failure is None and not replica.group.in_doubt:
                groups.append(GroupEpoch(key, replica.epoch))
        if groups:
            self._outbox.send(source, ConfirmAnswer(message.number, tuple(groups)))

    def take(self, source: NodeId, message: ConfirmAnswer) -> None:
        """Another broker has answered."""
        for key, epoch in message.groups:
            asked, replica = self._asked.get(key), self._replicas.get(key)
            if asked is None or replica is None:
                continue
            if epoch == asked.epoch:
                answered = asked.answered
                answered[source] = max(answered.get(source, 0), message.number)
                self._look(key, asked, replica)
            elif epoch > asked.epoch and is_within_reach(epoch, replica.epoch):
                replica.tell(partial(_hear_of, epoch=epoch))

    # What comes of them

    def look(self, replica: GroupReplica) -> None:
        """More is committed in a group, or another leads it."""
        asked = self._asked.get(replica.key)
        if asked is None:
            return
        if not replica.is_leader or replica.epoch != asked.epoch:
            self.give_up(replica.key)
        else:
            self._look(replica.key, asked, replica)

    def give_up(self, key: PartitionKey) -> None:
        """This broker does not lead that group any more: tell all who wait."""
        asked = self._asked.get(key)
        if asked is not None:
            self._drop(key)
            while asked.questions:
                asked.questions.popleft().done(_not_leading(key))

    def _look(self, key: PartitionKey, asked: _Asked, replica: GroupReplica) -> None:
        questions = asked.questions
        while questions and self._is_answered(questions[0], asked, replica):
            question = questions.popleft()
            high_watermark = question.high_watermark
            question.done(replica.high_watermark if high_watermark is None else high_watermark)
        if self._asked.get(key) is not asked:
            return  # Who was told has given it up, or has asked anew: that one has its own round.
        if not questions:
            self._drop(key)
        elif not asked.is_under_way:
            asked.due = _NEVER
            self._unsent[key] = None

    def _is_answered(self, question: Question, asked: _Asked, replica: GroupReplica) -> bool:
        number, answered, me = question.number, asked.answered, self._node_id
        if not number or not replica.is_serving or replica.epoch != asked.epoch:
            return False
        return replica.group.config.agreed(
            lambda node: node == me or answered.get(node, 0) >= number
        )

    def _is_me(self, node: NodeId) -> bool:
        return node == self._node_id

    def _drop(self, key: PartitionKey) -> None:
        self._asked.pop(key, None)
        self._unsent.pop(key, None)


def _hear_of(group: Group, epoch: Epoch) -> None:
    if epoch > group.epoch:
        group.adopt(epoch)


def _not_leading(key: PartitionKey) -> RequestError:
    return RequestError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead partition {key.partition}"
    )
