"""Whether a replica takes part in its group.

One whose disk refuses something, for now or for good, does not: nothing more is promised, and who
led has resigned. What was said holds, for it was durable when it was said. Once the disk takes it,
the replica takes part again, as after a new start.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.partitions.raft.entries import Entry, EpochStart
from tidemark.partitions.raft.ready import Ready
from tidemark.partitions.replication.solo import SoloReplica
from tidemark.partitions.storage.refusals import NotRecorded, SyncFailed, may_pass
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, Offset, Position


class HeldReady(NamedTuple):
    """What waits for the journal, before files may be cut."""

    ready: Ready
    later: tuple[Entry, ...]
    """Of its entries, those that the journal is yet to get: the log has them first."""


def may_be_done_later(error: Exception) -> bool:
    """Whether files that were not cut, or not all of them, may be cut in a while."""
    if isinstance(error, OSError):
        return may_pass(error) and not isinstance(error, SyncFailed)
    return isinstance(error, NotRecorded)


class ParticipatingReplica(SoloReplica):
    """The part of a `GroupReplica` that ends with what the disk refuses, and begins again."""

    __slots__ = ()

    def fail(self, what: str) -> None:
        """Take no part any more, until `resume`."""
        if self.failure is not None:
            return
        self.failure = what
        self._appended_end = None
        self._end_solo()
        # The core may be ahead of the files, by what is not done any more: a checkpoint of both
        # must not pass one off as the other.
        self.log.doubt(self.high_watermark)
        self._host.warn(f"{self._store.name} {what}")
        self._host.outbox.failed(self.key)
        self._resign()

    def _judge(self, error: Exception) -> None:
        """The disk has refused something: unless that may pass, the broker is to end."""
        if isinstance(error, SyncFailed) or (isinstance(error, OSError) and not may_pass(error)):
            self._host.disk_failed(error)

    def _take_back(self, ready: Ready, end_offset: Offset, error: OSError) -> None:
        """The disk is full, say. Go back to before the entries, of which nothing was promised, and
        begin anew from there in a while: the leader sends them again."""
        self.fail(f"cannot be written to now: {error}")
        self._judge(error)
        shape, first = self._group.shape, ready.entries[0]
        if self._group.has_ready:
            return  # There is more to be done on top of it: only a new start can tell.
        epoch = first.epoch
        if isinstance(first, EpochStart):
            epoch = shape.floor(Epoch(epoch - 1)).epoch
        try:
            self._store.truncate(end_offset)
        except (OSError, StorageError) as failure:
            self._judge(failure)
            return
        last = Position(epoch, end_offset)
        shape.truncate(last)
        if ready.is_cut:
            # The journal has them already, and must not have them before others in their place.
            self._store.stage(Ready(truncate_to=last))
        # A new core takes all that it finds for durable.
        self._store.when_durable(self._begin_anew)

    def _begin_anew(self) -> None:
        before = self._group
        group = self._new_group(before.shape, is_clean=before.is_clean, in_doubt=before.in_doubt)
        self._group = group
        if group.committed > self.committed:
            self._commit(group.committed)  # what a reset begins at is
        self._pause()

    def resume(self) -> None:
        """Take part again, as after a new start. For the node, which has seen it pause."""
        self.failure = None
        self.log.doubt(None)
        self._host.outbox.failed(self.key)

    def close(self) -> None:
        """The broker takes no part in the group any more. The log is its caller's."""
        if self._held is not None or self._group.has_ready:
            self.log.doubt(self.high_watermark)  # as where it fails: not all of it will be done
        if self._is_postponed:
            self._is_postponed = False
            self._host.held -= 1  # nobody comes back to it
        self.failure = self.failure or "it was closed"
        self._solo_epoch = self.commits_in = None  # the core hears of nothing any more
