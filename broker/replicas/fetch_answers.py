"""What a fetch is answered with: for each partition its records, its ends, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from tidemark.broker.replicas.fetching import Reading, ReadingPlan, Wanted
from tidemark.broker.replicas.leadership import NOBODY, NotLeader
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tidemark.protocol.types import NO_OFFSET, READ_COMMITTED, NodeId, Offset

_LEADER_SINCE: Final = 12
_UNKNOWN_LEADER: Final = LeaderIdAndEpoch()


class FetchPlan(ReadingPlan):
    """A fetch request, read as often as it takes, and answered once."""

    def respond(self, reading: Reading) -> FetchResponse:
        """Partitions of one topic that follow each other come together, as they did; in a session
        without those at rest of which its reader knows all."""
        topics: list[FetchableTopicResponse] = []
        answers: list[PartitionData] = []
        before: tuple[str | None, UUID] | None = None
        slices, errors, preferred = reading.slices, reading.errors, reading.preferred
        for at, wanted in enumerate(self._wanted):
            if self._remembered is not None and reading.still[at] and self._is_known(at):
                continue
            topic, topic_id, _, _ = wanted
            if before != (topic, topic_id):
                before, answers = (topic, topic_id), []
                topics.append(
                    FetchableTopicResponse(topic=topic or "", topic_id=topic_id, partitions=answers)
                )
            answers.append(self._answer(wanted, slices[at], errors[at], preferred.get(at, NOBODY)))
        return FetchResponse(responses=topics)

    def _is_known(self, at: int) -> bool:
        """Whether the session's reader was told just this of a partition at rest."""
        replica = self._wanted[at].replica
        assert replica is not None
        assert self._remembered is not None
        return self._remembered[at].told == replica.ends

    def refuse(self, code: ErrorCode) -> FetchResponse:
        """No data for anybody, and `code` for every partition."""
        count = len(self._wanted)
        reading = Reading([EMPTY_SLICE] * count, [RequestError(code)] * count, {}, [False] * count)
        return replace(self.respond(reading), error_code=code)

    def _answer(
        self, wanted: Wanted, found: LogSlice, error: RequestError | None, preferred: NodeId
    ) -> PartitionData:
        """One partition's part. Its records are empty, never null: that breaks clients (F5)."""
        replica, leader = wanted.replica, _UNKNOWN_LEADER
        high_watermark = stable = log_start = NO_OFFSET
        if replica is not None and error is None and not found:
            error = self._why_not_read(replica, wanted.asked)
        if replica is not None and (found or replica.is_serving or (self._rack and error is None)):
            high_watermark, stable, log_start = replica.ends
        if isinstance(error, NotLeader) and self._api_version >= _LEADER_SINCE:
            leader = LeaderIdAndEpoch(leader_id=error.leader, leader_epoch=error.epoch)
        if replica is not None and found:
            replica.sent(found, Offset(wanted.asked.fetch_offset))
        return PartitionData(
            partition_index=wanted.asked.partition,
            error_code=ErrorCode.NONE if error is None else error.code,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=log_start,
            current_leader=leader,
            aborted_transactions=self._aborted(replica, found, wanted.asked),
            preferred_read_replica=preferred,
            records=found,
        )

    def _aborted(
        self, replica: Replica | None, found: LogSlice, asked: FetchPartition
    ) -> Sequence[AbortedTransaction] | None:
        """What its reader has to leave out; null for who reads all that is there (A10)."""
        if self._request.isolation_level != READ_COMMITTED:
            return None
        if replica is None or not found:
            return ()
        return tuple(
            AbortedTransaction(producer_id=over.producer_id, first_offset=over.first_offset)
            for over in replica.aborted(found, Offset(asked.fetch_offset))
        )

    def _why_not_read(self, replica: Replica, asked: FetchPartition) -> RequestError | None:
        """Why there was nothing to read, where waiting has not helped."""
        if replica.is_serving:
            return None
        if not self._rack or replica.is_leader or not replica.is_available:
            return replica.why_not_serving()
        try:
            replica.check_epoch(asked.current_leader_epoch)
        except RequestError as error:
            return error
        return None
