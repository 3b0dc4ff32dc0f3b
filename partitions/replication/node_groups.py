"""Which groups a broker takes part in, and what it is asked to do about one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from tidemark.partitions.replication.confirming import Confirmed, Question
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node_peers import MeetingNode
from tidemark.partitions.replication.observers import Freshness
from tidemark.partitions.storage.journal import records as journal
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


class GroupsNode(MeetingNode):
    """The part of a `ReplicationNode` that groups join and leave."""

    def set_last_resorts(self, nodes: Iterable[NodeId]) -> None:
        """These brokers are to be elected only where no other can be."""
        self._campaigns.last_resorts = frozenset(nodes)

    def add(
        self,
        replica: GroupReplica,
        *,
        priority: Priority = Priority.REST,
        preference: Sequence[NodeId] = (),
        is_eager: bool = False,
        now: float | None = None,
    ) -> None:
        """Take part in a group.

        `preference`: the voters in the order in which they had better lead it. `is_eager`: all
        brokers want to know at once what is committed, not the group's members alone.
        """
        assert replica.key not in self._replicas
        self._advance(now)
        self._replicas[replica.key] = replica
        replica.priority, replica.preference = priority, preference
        replica.is_eager = is_eager
        self._join(replica)

    def _join(self, replica: GroupReplica) -> None:
        self.concerns.joined(replica, self._now)
        self._leaders.join(replica)
        self.dirty[replica] = None
        self._campaigns.seek(replica, self._now)

    def remove(self, key: PartitionKey, *, is_deleted: bool, lives_on: bool = False) -> None:
        """Take part no more. `is_deleted`: and the journal is to forget it; its log is not
        touched again. `lives_on`: on other brokers the group goes on, and who leads it is known."""
        if is_deleted and not lives_on:
            self._leaders.forget(key)
        replica = self._replicas.pop(key, None)
        if replica is None:
            return
        self.moves.abort(key, "the replica was given up", self._now)
        if self._leaders.leave(replica, is_deleted=is_deleted):
            self._news.add(key, self.peers.nodes)
        self._paused.pop(replica, None)
        self.missed.remove(replica)
        self.concerns.left(replica)
        if self._lane is not None:
            self._lane.remove(replica)
        replica.close()
        self.dirty.pop(replica, None)
        self._campaigns.remove(key, self._now)
        self.observers.forget(key)
        self.confirmations.give_up(key)
        if is_deleted:
            self.outbox.stage_record(journal.forget(key))

    def forget_gone(
        self, keys: Iterable[PartitionKey], exists: Callable[[UUID], bool], version: int
    ) -> None:
        """Forget who leads those of these groups whose topics do not exist, by this version of the
        metadata. To be called now and then with all that were heard of (`known.heard_of`), some at
        a time: one that is gone twice is forgotten."""
        self._leaders.forget_gone(keys, exists, version)

    def observe(
        self,
        key: PartitionKey,
        parents: Sequence[NodeId],
        *,
        preferred: Sequence[NodeId] = (),
        is_told: bool = False,
    ) -> None:
        """Pull what is committed in a group that was added, and in which this broker has no vote,
        from one of these. To be called again when they change.

        The `preferred` go first, in their order. `is_told`: the leader knows this broker for an
        observer (`set_observers` there), and tells it how far the group is committed.
        """
        self.observers.observe(key, parents, preferred=preferred, is_told=is_told)
        self._leaders.hear_again(self._replicas[key])

    def set_observers(self, key: PartitionKey, nodes: Sequence[NodeId]) -> None:
        """These brokers observe a group that may be led here: they are told how far it is."""
        new = [node for node in nodes if node not in self.observers.of(key)]
        self.observers.set_observers(key, nodes)
        if new:
            self._news.add(key, [node for node in new if node != self.node_id])

    def freshness(self, replica: GroupReplica) -> Freshness:
        """How far a replica here is behind what its leader has committed, as of the last event."""
        return self.observers.freshness(replica, self._now)

    def confirm(self, key: PartitionKey, done: Confirmed) -> Question:
        """Ask a majority whether this broker leads a group; see `confirming.py`."""
        return self.confirmations.ask(key, done)

    def move_leader(
        self, key: PartitionKey, target: NodeId, deadline: float, *, now: float | None = None
    ) -> None:
        """Have a group that is led here led by `target` by then; what has become of it is in a
        turn's output. Raises `RequestError` if that cannot be."""
        replica = self._replicas.get(key)
        if replica is None:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker has no replica of it")
        self._advance(now)
        self.moves.begin(replica, target, now=self._now, deadline=deadline)
