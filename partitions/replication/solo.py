"""A replica that is alone: what is appended past its core, and when the core has to hear of it."""

from __future__ import annotations

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.replica_state import ReplicaState
from tidemark.protocol.types import Epoch, Offset


class SoloReplica(ReplicaState):
    """The part of a `GroupReplica` that knows what its core has not heard.

    Of what is appended in a turn the core hears once, before anything else happens to the group.
    While the replica is solo, and nothing else does, it need not hear of it at all.
    """

    __slots__ = ()

    @property
    def group(self) -> Group:
        """The core, to look at; it knows of all that was appended."""
        self._tell_appended()
        return self._group

    @property
    def is_solo(self) -> bool:
        """Whether nobody but this replica has anything to do with what is appended."""
        return self._solo_epoch is not None

    @property
    def syncs_before_ack(self) -> bool:
        """Whether batches must be synced before they count (`flush=commit`).

        It may be changed; to true raises `OSError` if the disk does not take what was in the page
        cache only until now, and blocks for it: a caller with much there syncs it before.
        """
        return self._store.syncs_before_ack

    @syncs_before_ack.setter
    def syncs_before_ack(self, syncs: bool) -> None:
        self._end_solo()
        self._store.set_syncs_before_ack(syncs)

    def _end_solo(self) -> None:
        """Something but an append happens: before it the core hears of all that was appended, and
        from now on nothing is committed without it."""
        if self._appended_end is not None:
            self._tell_appended()
        self._solo_epoch = self.commits_in = None

    def _tell_appended(self) -> None:
        if self._appended_end is not None:
            end_offset, self._appended_end = self._appended_end, None
            syncs = self._store.syncs_before_ack
            if syncs and self._solo_epoch is not None:
                self._tell_synced(end_offset)
            else:
                self._group.appended(end_offset, is_durable=not syncs)

    def _tell_synced(self, end_offset: Offset) -> None:
        """Have the core hear what has become durable without it, and then of what is still being
        synced, as of all that is appended: it is not solo any more."""
        self._solo_epoch = self.commits_in = None
        if self.high_watermark > self._group.high_watermark:
            self._group.appended(self.high_watermark, is_durable=True)
        if end_offset > self.high_watermark:
            self._group.appended(end_offset, is_durable=False)
        self._touch()

    def _look_whether_solo(self) -> None:
        self._solo_epoch = self.commits_in = None
        self._solo_epoch = self._find_solo()
        if not self._store.syncs_before_ack:
            self.commits_in = self._solo_epoch

    def _find_solo(self) -> Epoch | None:
        """The epoch in which a client's batch is committed as soon as it is durable here, and
        nobody has to be asked or told: this replica is alone.

        It holds for as long as nothing happens to the group but appends. So long the core need not
        hear of them.
        """
        group = self._group
        is_solo = (
            self._applier is None
            and self._is_alone
            and not self.is_eager
            and self.is_accepting
            and not group.progress()
            and group.committed == (group.epoch, self.log.end_offset)
        )
        return group.epoch if is_solo else None
