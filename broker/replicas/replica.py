"""One partition on this broker: what happens to it, and who is told.

What the replicas of a partition agree on is their group's (`partitions/replication/`); this is what
clients see of it. Everything runs on the loop's thread. What blocks is awaited, and nothing is half
done across an await.
"""

from __future__ import annotations

from tidemark.broker.replicas.replica_commits import CommittingReplica
from tidemark.broker.replicas.replica_parts import log_settings
from tidemark.broker.replicas.replica_state import ReplicaSpec
from tidemark.broker.replicas.replica_writes import WritingReplica
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.syncing import NotTaken
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.types import NO_EPOCH, Epoch, Offset

__all__ = ["Replica", "ReplicaSpec"]


class Replica(CommittingReplica, WritingReplica):
    """One partition. Made by `opening.open_replicas`; used through `Topics`.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back while
    this broker leads. Every method that needs the log raises `RequestError` when it is not there:
    NOT_LEADER once the replica is closed, UNKNOWN_TOPIC_OR_PARTITION once it is deleted,
    KAFKA_STORAGE_ERROR while its files cannot be served (`failure` says why).
    """

    __slots__ = ()

    def changed(self, change: GroupChange) -> None:
        member = self._member
        if member is None:
            return
        if change.leadership or change.serving or change.failed:
            epoch = member.epoch if member.is_leader else NO_EPOCH
            if epoch != self._epoch:
                # Who waited for the leader of an epoch is not told of what another one commits.
                self._epoch = epoch
                self._verifications = None
                self._release_waiters(self.why_not_serving())
            self._wake_who_waits_for_a_leader()
            self._services.leadership.changed(self)
        self._commit_waiters.advance(member.high_watermark)
        if self._fetch_waiters:
            self._wake_later()
        if member.log.needs_sync:
            self._services.checkpoints.save_later(self)
        if self.line and not self._must_hold:
            self.line.release()

    # Changing

    def apply_config(self, config: TopicConfig) -> None:
        """Use `config` from now on, for what is there as well."""
        self.config = config
        if self._member is None:
            return
        self._member.log.settings = log_settings(config)
        checkpoints, syncs = self._services.checkpoints, config.syncs_before_ack
        if self._member.syncs_before_ack == syncs:
            checkpoints.keep_flush(self)
        else:
            checkpoints.set_flush_later(self, syncs=syncs)

    def set_flush(self, *, syncs: bool) -> None:
        member = self._member
        if member is None:
            return
        try:
            member.syncs_before_ack = syncs
        except NotTaken:
            raise
        except OSError as error:
            self._services.disk.fail(error)
            return
        self._services.checkpoints.note(self)

    async def delete_records(self, offset: Offset) -> Offset:
        """Give up all below `offset` (-1: the high watermark); the log start after it.

        Raises `RequestError` OFFSET_OUT_OF_RANGE above the high watermark.
        """
        self.check_serving()
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has committed up to {self.high_watermark}",
            )
        if offset > self.log_start:
            driver = self._services.driver
            self.member.move_log_start(offset)
            driver.touch()
            while self.log_start < offset:
                await driver.wait_changed()
                self.check_serving()
            await driver.wait_durable()
        return self.log_start

    def apply_retention(self, now_ms: int) -> None:
        """Give up the segments that the config no longer keeps."""
        if self._member is not None:
            self._member.apply_retention(now_ms)
            if self._member.log.needs_sync:
                self._services.checkpoints.save_later(self)
            self._services.driver.touch()

    def retain(self) -> None:
        if self._member is not None and self._member.log.segment_count > 1:
            try:
                self.apply_retention(self._services.clock.now_ms())
            except (OSError, StorageError, CorruptBatch) as error:
                self._services.storage_failed(f"{self.name}: retention: {error}")

    # Ending

    def delete(self) -> None:
        """The partition is deleted: its files may go away at once."""
        member = self._retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._services.driver.remove(self.key, is_deleted=True)
        if member is not None:
            member.log.abandon()

    def give_up(self) -> Epoch:
        """Other brokers hold the partition now: its files here may go away at once.

        Returns the epoch that is to be remembered: it has promised nothing in later ones.
        """
        member = self._retire(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._services.driver.remove(self.key, is_deleted=True, lives_on=True)
        if member is None:
            return NO_EPOCH
        member.log.abandon()
        self._services.checkpoints.leave(self.key, member.epoch)
        return member.epoch

    def close(self) -> GroupReplica | None:
        """Serve nothing any more: the broker is ending. The log is the caller's to close."""
        return self._retire(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _retire(self, code: ErrorCode) -> GroupReplica | None:
        """Whoever waits is answered with `code`, and so is who comes."""
        member, self._member = self._member, None
        self._refused_with, self.failure = code, None
        self._services.driver.stop_watching(self)
        self._services.checkpoints.forget(self)
        self._services.turn.run(self._end)
        return member

    def _end(self) -> None:
        self._release_waiters(self._refusal)
        self.line.release()
        self._wake_who_waits_for_a_leader()
        self._services.leadership.changed(self)

    def _release_waiters(self, error: RequestError) -> None:
        self._commit_waiters.fail_all(error)
        self._held_waiters.fail_all(error)
        self._fetch_waiters.wake()
