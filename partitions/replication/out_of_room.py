"""What a replica hears of a leader while its disk has no room for records, and what it says then.

It stays a follower that votes and knows its leader; records are as good as lost on the way, and are
sent again, less and less often. Were they refused by its log, the replica would take no part until
it begins anew, once a second, and be sent as much each time. Once there is room the leader is told,
so that nobody waits for it to try again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import Entry, EpochStart
from tidemark.partitions.raft.messages import AppendRequest, Message, Opened, PullResponse
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.storage.room import Room

if TYPE_CHECKING:
    from tidemark.partitions.replication.group_replica import GroupReplica


class MissedRecords:
    """Replicas of this broker that were sent records for which there was no room."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        # They share a room or two: what waits for one is looked at once it is there.
        self._missed: dict[Room, dict[GroupReplica, None]] = {}

    def add(self, replica: GroupReplica) -> None:
        self._missed.setdefault(replica.log.room, {})[replica] = None

    def remove(self, replica: GroupReplica) -> None:
        for missed in self._missed.values():
            missed.pop(replica, None)

    def take_back(self) -> list[GroupReplica]:
        """Those that have room again: their leaders are told to begin again where they are."""
        if not self._missed:
            return []
        rooms = [room for room in self._missed if not room.is_out]
        back = [replica for room in rooms for replica in self._missed.pop(room)]
        for replica in back:
            leader = replica.leader
            if leader is not None and not replica.is_leader and replica.failure is None:
                self._outbox.send(leader, GroupMessage(replica.key, Opened(replica.epoch)))
        return back


def without_records(message: Message) -> Message | None:
    """The message up to its first records; `None` if nothing is before them.

    A request without any entries is answered, and what follows it would be sent at once: so it must
    not become one.
    """
    if not isinstance(message, AppendRequest | PullResponse) or not message.entries:
        return message
    entries = tuple(takewhile(_is_epoch_start, message.entries))
    if not entries:
        return None
    return message if len(entries) == len(message.entries) else replace(message, entries=entries)


def _is_epoch_start(entry: Entry) -> bool:
    return isinstance(entry, EpochStart)
