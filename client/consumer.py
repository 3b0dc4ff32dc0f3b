"""Reading records: see `Consumer`.

Here the caller meets what is read and fetched ahead (`readings.py`, `handing_out.py`), the commits
(`committing.py`) and the group (`group.py`).
"""

from collections.abc import Awaitable, Collection, Mapping
from contextlib import suppress

import trio

from tidemark.client.background import Signal
from tidemark.client.committing import Committer
from tidemark.client.consumer_settings import ConsumerSettings
from tidemark.client.coordinator import GroupMembership, as_commit
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.group_settings import Rebalanced
from tidemark.client.handing_out import HandingOut
from tidemark.client.limits import require_by_partition, require_partition
from tidemark.client.lookups import list_offsets, require_partitions, resolve_starts
from tidemark.client.network import Network
from tidemark.client.offsets import AtOffset, Beginning, Start, as_start
from tidemark.client.readings import Readings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset, TopicPartition


class Consumer(HandingOut):
    """Reads records; made by `Client.consumer`. An async iterator of `ConsumerRecord`.

    Positions count what was handed out. A group's automatic commits leave out the record that is
    in the caller's hands; asking for the next one says that it is done with. So one task reads:
    another that asks meanwhile gets a `trio.BusyResourceError`.
    """

    def __init__(self, network: Network, readings: Readings, settings: ConsumerSettings) -> None:
        super().__init__(readings, settings)
        self._network = network
        self._committer: Committer | None = None

    # Positions

    async def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """Go on from there; what was fetched ahead of it is dropped.

        `KeyError` if it is not assigned.
        """
        self._require_open()
        require_partition(topic_partition)
        starts = {topic_partition: as_start(start)}
        self._readings.by_partition[topic_partition]  # else there is nothing to be asked
        offsets = await resolve_starts(self._network, starts, self._settings.fetch.isolation)
        # It may have been taken away and given again meanwhile.
        self._jump(self._readings.by_partition[topic_partition], offsets[topic_partition])

    async def beginning_offsets(self) -> dict[TopicPartition, Offset]:
        """The log start of everything assigned, asked for now."""
        specs = dict.fromkeys(self._readings.by_partition, Beginning())
        found = await list_offsets(self._network, specs, self._settings.fetch.isolation)
        return {topic_partition: listed.offset for topic_partition, listed in found.items()}

    async def end_offsets(self) -> dict[TopicPartition, Offset]:
        """The end (exclusive) of everything assigned, asked for now; with the levels strict and
        two-step, all that was committed by now."""
        return await self._readings.ends(list(self._readings.by_partition))

    # The group

    async def commit(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None
    ) -> None:
        """Commit these next offsets for the group, or the positions of all that is assigned.

        The record in the caller's hands counts as done. Waits out a rebalance that takes none of
        these partitions away, as a cooperative one may. Raises `RequestError` when the group has
        moved on without this member (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, ...), and
        `ValueError` without a group.
        """
        committer = self._require_group()
        if offsets is None:
            offsets = {tp: self._as_commit(tp) for tp in self._readings.by_partition}
        require_by_partition("offsets", offsets, "42")
        gone = [tp for tp in offsets if tp not in self._readings.by_partition]
        if gone:
            # Its next owner's commits would be set back.
            raise RequestError(
                ErrorCode.ILLEGAL_GENERATION, f"{gone[0]} is not assigned to this consumer now"
            )
        read = self._readings.by_partition
        owned = {tp: read[tp] for tp in offsets}
        # A partition that has been away in the meantime has another reading.
        await committer.commit(
            offsets, is_kept=lambda: all(read.get(tp) is owned[tp] for tp in owned)
        )
        # Else automatic commits would set it back to what is in the caller's hands.
        for topic_partition, committed in offsets.items():
            self._finish_to(topic_partition, as_commit(committed).offset)

    async def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """The group's commits for what is assigned; partitions without one are left out."""
        return await self._require_group().committed(self._readings.by_partition)

    @property
    def group_membership(self) -> GroupMembership:
        """Who commits what was handed out last: for `Producer.send_offsets_to_transaction`.

        This consumer as it is in its group now; but if partitions have been taken away since, as
        it was then, and the group takes no commits of that generation any more. As with Java's
        client, that holds until more is handed out.
        """
        committer = self._require_group()
        return self._was or committer.group_membership

    def _require_group(self) -> Committer:
        self._require_open()
        if self._committer is None:
            raise ValueError("this consumer has no group")
        return self._committer

    async def start(self, committer: Committer | None) -> None:
        """Begin with what is read without sharing; the rest comes from the group's member."""
        self._committer = committer
        if self._settings.is_shared:
            return
        partitions = self._settings.partitions
        # Where every start is an offset, nothing else would ask about the topics.
        await require_partitions(self._network, partitions)
        for topic in self._settings.topics:
            found = await self._network.topic(topic)
            partitions += tuple(TopicPartition(topic, p.partition) for p in found.partitions)
        await self.assigned(frozenset(partitions))

    async def find_new_partitions_until_cancelled(self) -> None:
        """Read partitions that topics get while they are read, from their beginning."""
        changed = Signal()
        with self._network.listening(changed.set):
            while True:
                await changed.wait()
                known = self._network.view.partitions_of(self._settings.topics)
                new = [tp for tp in known if tp not in self._readings.by_partition]
                # Without success it is tried again when the view changes next.
                with suppress(OSError, RequestError):
                    await self._readings.add(dict.fromkeys(new, Beginning()), until_end=False)

    # GroupListener

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        commits: dict[TopicPartition, CommittedOffset] = {}
        in_order = sorted(partitions)
        if self._committer is not None and partitions:
            commits = await self._committer.committed(in_order)
        starts: dict[TopicPartition, Start] = {
            tp: AtOffset(commits[tp].offset) if tp in commits else self._settings.start_of(tp)
            for tp in in_order
        }
        # What they are given to may have to be made ready first, or they are to begin elsewhere.
        await self._readings.add(starts, until_end=self._settings.until_end, is_held=True)
        try:
            await self._tell(self._settings.on_assigned, partitions)
        except BaseException:
            self._drop(partitions)
            raise
        self._readings.release(in_order)
        self._is_assigned = True
        self._readings.buffer.changed.set()

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._remember_membership()
        # What is handed out after the commit would be read again by whoever gets them next.
        for topic_partition in partitions:
            self._hold(topic_partition)
        if self._committer is not None and self._settings.auto_commit_seconds is not None:
            await self._commit_done(partitions)
        await self._tell(self._settings.on_revoked, partitions)
        self._drop(partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._remember_membership()
        self._drop(partitions)
        await self._tell(self._settings.on_revoked, partitions)

    def _remember_membership(self) -> None:
        """What was handed out may be of partitions that go now: it is nobody else's to commit."""
        if self._committer is not None and self._was is None:
            self._was = self._committer.group_membership
        if self._reading is not None and self._taken < len(self._records):
            self._put_back(self._reading)  # else what is handed out next would be of then, too

    async def _tell(
        self, callback: Rebalanced | None, partitions: frozenset[TopicPartition]
    ) -> None:
        if callback is None:
            return
        try:
            waiting = callback(partitions)
            if not isinstance(waiting, Awaitable):
                raise TypeError(
                    f"on_assigned and on_revoked are async functions, and {callback!r} is none"
                )
            await waiting
        except Exception as error:  # whatever it is, it is the caller's, and goes to the caller
            self._callbacks_error = error
            raise

    def is_callers(self, error: Exception) -> bool:
        return error is self._callbacks_error

    def failed(self, error: Exception) -> None:
        self._gave_up = error
        self._readings.buffer.changed.set()

    def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        self._is_assigned = False  # until it is said what is read in their place
        if self._reading is not None and self._reading.topic_partition in partitions:
            self._let_go()
        self._readings.drop(partitions)

    async def commit_until_cancelled(self, seconds: float) -> None:
        """Commit what is done with, every so often; the consumer's own task."""
        while True:
            await trio.sleep(seconds)
            await self._commit_done(self._readings.by_partition)

    async def _commit_done(self, partitions: Collection[TopicPartition]) -> None:
        if self._committer is not None:
            read = self._readings.by_partition
            await self._committer.try_commit(
                lambda: {tp: self.done(tp) for tp in partitions if tp in read}
            )

    async def close(self, *, is_done: bool) -> None:
        """Commit a last time; `is_done` says whether that goes for the record in hand, too."""
        if is_done and self._reading is not None:
            at = self._reading.topic_partition
            self._finish_to(at, self.position(at))
        try:
            if self._settings.auto_commit_seconds is not None:
                await self._commit_done(self._readings.by_partition)
        finally:
            self._let_go()
            self._is_closed = True
            # Whoever reads in another task would wait for ever.
            self._readings.buffer.changed.set()
