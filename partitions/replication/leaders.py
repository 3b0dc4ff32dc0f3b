"""Who leads which group: as the replicas here believe, and as the leaders themselves say.

A leader that is heard of is followed, and one that says it leads no more is given up. A replica
that nothing has come to yet says once that it is there: its connections were there before it was,
and what was sent to it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final
from uuid import UUID

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import Opened
from tidemark.partitions.replication.checking import is_within_reach
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.known_leaders import KnownLeader, KnownLeaders
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import GroupBeat, GroupMessage
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Position

# Made for every group with news, ten times a second: calling the class takes twice the time.
_group_beat: Final = partial(tuple.__new__, GroupBeat)


class Leaders:
    """Of all groups that this broker has a replica of, or has heard of."""

    def __init__(
        self,
        node_id: NodeId,
        peers: PeerTable,
        outbox: Outbox,
        replicas: Mapping[PartitionKey, GroupReplica],
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._outbox = outbox
        self._replicas = replicas
        self.known = KnownLeaders()
        # Where each replica's group is led, as that replica believes.
        self._led: dict[NodeId, dict[PartitionKey, GroupReplica]] = {}
        self._leader_of: dict[PartitionKey, NodeId] = {}
        # Those that have taken nothing in from a leader since they are here.
        self._unmet: dict[GroupReplica, None] = {}
        # The last news of groups that were led here and left.
        self._parted: dict[PartitionKey, GroupBeat] = {}

    # Groups come and go

    def join(self, replica: GroupReplica) -> None:
        """It is here from now on; it follows the leader that is known."""
        self._parted.pop(replica.key, None)
        self._unmet[replica] = None
        known = self.known.get(replica.key)
        if known.leads and self._peers.is_alive(known.node):
            self._hear(replica, known.node, known.epoch, known.committed)
        else:
            self._tell_first(replica)

    def hear_again(self, replica: GroupReplica) -> None:
        """It has forgotten whom it followed."""
        known = self.known.get(replica.key)
        if known.leads and self._peers.is_alive(known.node):
            self._hear(replica, known.node, known.epoch, known.committed)

    def leave(self, replica: GroupReplica, *, is_deleted: bool) -> bool:
        """It is not here any more; whether the others are to hear that it does not lead."""
        key, has_led = replica.key, replica.led_epoch is not None and not is_deleted
        if has_led:
            assert replica.led_epoch is not None
            self._parted[key] = GroupBeat(
                key, replica.led_epoch, False, replica.committed, replica.log_start
            )
        self._unmet.pop(replica, None)
        self._believe(key, None)
        return has_led

    def forget(self, key: PartitionKey) -> None:
        """The group does not exist any more."""
        self.known.remove(key)
        self._parted.pop(key, None)

    def forget_gone(
        self, keys: Iterable[PartitionKey], exists: Callable[[UUID], bool], version: int
    ) -> None:
        """As far as the metadata say so at this version, and no leader has said that it knows of a
        later one. What has just been applied somewhere is not always said at once, so a group is
        forgotten when it was gone the last time, too."""

        def is_gone(key: PartitionKey, known: KnownLeader) -> bool:
            return not (
                key in self._replicas
                or exists(key.topic_id)
                or self._peers.has_applied(known.node, version)
            )

        self.known.forget_gone(keys, is_gone)

    # What replicas believe

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads the group, as far as this broker knows, and in which epoch."""
        known, replica = self.known.get(key), self._replicas.get(key)
        if replica is not None and replica.epoch >= known.epoch and replica.leader is not None:
            return (replica.leader if replica.failure is None else None), replica.epoch
        epoch = known.epoch if replica is None else max(known.epoch, replica.epoch)
        if known.leads and known.epoch == epoch and self._peers.is_alive(known.node):
            return known.node, epoch
        return None, epoch

    def led_by(self, node: NodeId) -> Collection[GroupReplica]:
        """The replicas here that follow `node`; those that lead, for this broker itself."""
        return self._led.get(node, {}).values()

    def led_with(self, node: NodeId) -> list[GroupReplica]:
        """The groups led here that `node` votes in."""
        return [each for each in self.led_by(self._node_id) if node in each.group.config.members]

    def changed(self, replica: GroupReplica, leader: NodeId | None) -> bool:
        """A replica believes something new; whether that is news of a leader here."""
        was_led_here = self._leader_of.get(replica.key) == self._node_id
        self._believe(replica.key, leader)
        is_led_here = leader == self._node_id
        if is_led_here:
            self._unmet.pop(replica, None)
        if is_led_here or was_led_here:
            beat = self.beat_of(replica.key)
            if beat is not None:
                self.known.hear(self._node_id, beat)
        return is_led_here or was_led_here

    def _believe(self, key: PartitionKey, leader: NodeId | None) -> None:
        before = self._leader_of.pop(key, None)
        if before is not None:
            self._led[before].pop(key, None)
        if leader is not None:
            self._leader_of[key] = leader
            self._led.setdefault(leader, {})[key] = self._replicas[key]

    def beat_of(self, key: PartitionKey) -> GroupBeat | None:
        """What there is to say of a group; `None` if it was never led here, or is gone."""
        replica = self._replicas.get(key)
        if replica is None or replica.led_epoch is None:
            return self._parted.get(key)
        leads = replica.is_leader and replica.led_epoch == replica.epoch
        committed, log_start = replica.committed, replica.log.start_offset
        return _group_beat((key, replica.led_epoch, leads, committed, log_start))

    # What other brokers say

    def take(self, source: NodeId, beat: GroupBeat) -> bool:
        """News of a group; whether they change who leads it."""
        replica = self._replicas.get(beat.key)
        if replica is not None:  # What is remembered shares the replica's key.
            beat = _group_beat((replica.key, *beat[1:]))
        is_news = self.known.hear(source, beat)
        if is_news:
            self._outbox.leadership(beat.key)
        if replica is None:
            return is_news
        if beat.leads:
            self._hear(replica, source, beat.epoch, beat.committed)
            replica.follow_log_start(beat.log_start)
        elif replica.leader == source and replica.epoch <= beat.epoch:
            # It may have led later epochs, too, that this replica has not heard of.
            replica.tell(Group.leader_lost)
        return is_news

    def came_alive(self, node: NodeId) -> None:
        """What it leads is believed again."""
        for key, known in self.known.led_by(node):
            self._outbox.leadership(key)
            replica = self._replicas.get(key)
            if replica is not None:
                self._hear(replica, node, known.epoch, known.committed)

    def lost(self, node: NodeId) -> None:
        """It is dead: nobody leads what it led."""
        for replica in list(self.led_by(node)):
            replica.tell(Group.leader_lost)
        for key, _ in self.known.led_by(node):
            self._outbox.leadership(key)

    def replaced(self, node: NodeId) -> None:
        """Another process answers in its place, and leads nothing yet."""
        for key in self.known.forget_process(node):
            self._outbox.leadership(key)

    def _hear(
        self, replica: GroupReplica, leader: NodeId, epoch: Epoch, committed: Position
    ) -> None:
        is_news = epoch >= replica.epoch and is_within_reach(epoch, replica.epoch)
        if is_news and leader != self._node_id:
            replica.tell(lambda group: group.heard_leader(leader, epoch, committed))
            if replica in self._unmet:
                # What it has sent came before this replica was here.
                del self._unmet[replica]
                self._say_opened(replica, leader)

    # Replicas that have just been opened

    def met(self, replica: GroupReplica) -> None:
        """Entries have come from its leader."""
        if self._unmet:
            self._unmet.pop(replica, None)
            if not self._unmet:
                self._unmet = {}  # the table of one that has held thousands stays that large

    def _tell_first(self, replica: GroupReplica) -> None:
        """Who had better lead may have asked for a vote already."""
        for node in replica.preference:
            if node == self._node_id:
                return
            if self._peers.is_alive(node):
                self._say_opened(replica, node)
                return

    def _say_opened(self, replica: GroupReplica, to: NodeId) -> None:
        self._outbox.send(to, GroupMessage(replica.key, Opened(replica.epoch)))
