"""What of a group is in the log, what is on its way there, and who waits for it.

A group has one write on its way at a time. What changes meanwhile goes into the next one, and an
answer leaves only once all that it rests on is durable: so a coordinator that takes over knows of
everything that any member was told. A write that failed is made good by the next.
"""

from collections.abc import Iterable
from typing import TypeAlias

from tidemark.partitions.state_machines.groups.effects import LogRecord, RecordValue, Reply
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import CoordinatorKey

Stored: TypeAlias = dict[CoordinatorKey, RecordValue]


class Recording:
    def __init__(self) -> None:
        self.is_touched = False
        """Whether the log may say something else than what is so, and of which members."""
        self.members: set[str] = set()
        self.is_under_way = False
        self._stored: Stored = {}
        # Keys of which it is not known what the log says: a write of them has failed.
        self._unsure: set[CoordinatorKey] = set()
        # Those that are taken out by the write under way: the log holds them until it is durable.
        self._leaving: set[CoordinatorKey] = set()
        # Who waits for the write that is under way, and for the one after it.
        self._waiting_now: list[Reply] = []
        self._waiting_next: list[Reply] = []

    def touch(self, member_id: str) -> None:
        self.members.add(member_id)
        self.is_touched = True

    @property
    def has_waiting(self) -> bool:
        """Whether anybody waits for the write after the one under way."""
        return bool(self._waiting_next)

    def answer(self, reply: Reply, *, rests_on_changes: bool) -> bool:
        """Keep the answer until its time; False if there is nothing to wait for."""
        if rests_on_changes:
            self._waiting_next.append(reply)
        elif self.is_under_way:
            self._waiting_now.append(reply)
        else:
            return False
        return True

    def forget(self, keys: Iterable[CoordinatorKey]) -> None:
        """The log may hold records of these keys: of a group that this one takes the place of."""
        self._unsure.update(keys)
        self.is_touched = True

    def restored(self, records: Stored) -> None:
        self._stored = records

    @property
    def keys(self) -> set[CoordinatorKey]:
        """All that the log may hold of the group."""
        return {*self._stored, *self._unsure, *self._leaving}

    @property
    def unsure(self) -> set[CoordinatorKey]:
        return set(self._unsure)

    def difference(self, wanted: Iterable[LogRecord]) -> list[LogRecord]:
        """Those of the records that the log does not hold."""
        return [
            record
            for record in wanted
            if record.key in self._unsure or self._stored.get(record.key) != record.value
        ]

    def begin(self, records: Iterable[LogRecord]) -> None:
        """The records are handed out to be written."""
        assert not self.is_under_way
        self.is_under_way = True
        self._waiting_now, self._waiting_next = self._waiting_next, []
        for key, value in records:
            self._unsure.discard(key)
            if value is None:
                self._stored.pop(key, None)
                self._leaving.add(key)
            else:
                self._stored[key] = value

    def end(self, records: Iterable[LogRecord], error: ErrorCode) -> list[Reply]:
        """The write is over; the answers that hung on it."""
        self.is_under_way = False
        self._leaving.clear()
        replies, self._waiting_now = self._waiting_now, []
        if error is ErrorCode.NONE:
            return replies
        self.forget(key for key, _ in records)
        return [Reply(token, answer.refused(error)) for token, answer in replies]

    def nothing_to_write(self) -> list[Reply]:
        """What changed has changed back: the answers that were to hang on the next write."""
        assert not self.is_under_way
        replies, self._waiting_next = self._waiting_next, []
        return replies

    def end_all(self, error: ErrorCode) -> list[Reply]:
        """Nothing will be written any more: everybody is refused."""
        replies = [*self._waiting_now, *self._waiting_next]
        self._waiting_now, self._waiting_next = [], []
        return [Reply(token, answer.refused(error)) for token, answer in replies]
