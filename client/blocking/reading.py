"""A range of one partition as undecoded record batches, on a blocking socket.

While the caller works on one fetch, the next has been asked for, and waits in the socket's buffer:
the broker and the network do not stand still, and no more than that is ever ahead.
"""

import time
from collections.abc import Generator, Sequence
from random import Random
from typing import Final

from tidemark.client.addresses import Address, parse_bootstrap
from tidemark.client.blocking.brokers import Brokers
from tidemark.client.blocking.connection import BlockingConnection
from tidemark.client.blocking.kept import KeptConnections
from tidemark.client.codes import check
from tidemark.client.offsets import Isolation
from tidemark.client.reading import corrupt_at, next_offset
from tidemark.client.records import FetchedBatches
from tidemark.client.retries import may_pass
from tidemark.client.settings import ClientSettings
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, TidemarkError
from tidemark.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, TopicPartition

BEGIN_BEHIND: Final = "who begins behind it can read on"
_MAX_WAIT_MS = 500


class NothingCame(TidemarkError):
    """A range that was to be there is not, or nobody gives it out."""


def read_batches(
    bootstrap: str | Sequence[str],
    topic_partition: TopicPartition,
    start: Offset | int,
    end: Offset | int,
    *,
    settings: ClientSettings | None = None,
    fetch_bytes: int = 4 * 1024 * 1024,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    connections: KeptConnections | None = None,
    memory: Buffers | None = None,
    patience_seconds: float | None = None,
) -> Generator[FetchedBatches]:
    """The batches that hold the offsets from `start` to `end` (exclusive), as fetches bring them.

    The last may go on beyond `end`, the first may begin before `start`. Waits for records that are
    not there yet. Follows the partition when its leader moves; with a `rack` in the settings, reads
    from the replica there that the leader names, as long as that is of use. Raises `RequestError`
    (OFFSET_OUT_OF_RANGE where `start` is not in the log, what will not pass), and what may pass
    after the client's `retry_timeout_seconds`; `CorruptBatch` for a damaged header, once all before
    it was given. Close the iterator to let go of the connection: it goes back to `connections`,
    where it came from, or is closed.

    With `patience_seconds`, for a range that is known to be there, it raises `NothingCame` when for
    so long nothing has: the topic may have been made anew, with fewer records.

    With `memory`, fetches are received into that, and written over once there are no views of their
    `data`; see `Buffers`.
    """
    reader = _RangeReader(
        parse_bootstrap(bootstrap),
        topic_partition,
        Offset(start),
        Offset(end),
        settings or ClientSettings(),
        fetch_bytes,
        isolation,
        connections,
        memory,
        patience_seconds,
    )
    try:
        yield from reader.read()
    finally:
        reader.let_go()


class _RangeReader:
    """The state of `read_batches`: how far it is, and the connection to whom it reads from."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        topic_partition: TopicPartition,
        start: Offset,
        end: Offset,
        settings: ClientSettings,
        fetch_bytes: int,
        isolation: Isolation,
        connections: KeptConnections | None,
        memory: Buffers | None,
        patience_seconds: float | None,
    ) -> None:
        self._brokers = Brokers(bootstrap, settings, connections)
        self._topic_partition = topic_partition
        self._position = start
        self._end = end
        self._settings = settings
        self._fetch_bytes = fetch_bytes
        self._isolation = isolation
        self._memory = memory
        self._patience_seconds = patience_seconds
        self._random = Random()
        self._leader: BlockingConnection | None = None
        self._leader_epoch: Epoch = NO_EPOCH
        self._near: int | None = None
        """The replica that the leader has named."""
        self._stays_at_leader = False
        """A nearer one was of no use."""

    def let_go(self) -> None:
        """Of the connection, which somebody else may use if nothing is on its way."""
        if self._leader is not None:
            self._leader.wire.receive_into(None)
            self._brokers.release(self._leader)
            self._leader = None

    def _close(self) -> None:
        if self._leader is not None:
            self._leader.close()
            self._leader = None

    def read(self) -> Generator[FetchedBatches]:
        """See `read_batches`."""
        if self._position >= self._end:
            return
        self._ask()
        came = time.monotonic()
        while True:
            fetched = self._answer()
            if fetched is None:
                came = self._waited_since(came)
            if self._position < self._end:
                self._ask()
            if fetched is not None:
                yield fetched
                fetched = None  # its memory may be wanted for the next
                came = time.monotonic()
            if self._position >= self._end:
                return

    def _waited_since(self, came: float) -> float:
        """Since when nothing has come, from whom is asked now. Raises `NothingCame`."""
        if self._patience_seconds is None or time.monotonic() - came < self._patience_seconds:
            return came
        if self._near is None:
            raise NothingCame(
                f"{self._topic_partition} at {self._position}: nothing came for"
                f" {self._patience_seconds:g} s, and it was to be there up to {self._end}. Was the"
                " topic made anew meanwhile? Then begin anew, too; else tidemark cluster status"
                " shows whether enough brokers are up"
            )
        # It may have been cut off from the leader.
        self._close()
        self._near, self._stays_at_leader = None, True
        return time.monotonic()

    def _ask(self) -> None:
        """Send the next fetch, if a connection can be had; else `_answer` finds out why not."""
        try:
            self._connected().send(self._request())
        except (OSError, RequestError):
            self._close()

    def _answer(self) -> FetchedBatches | None:
        """What the fetch brings; None if there is nothing new. Tried again while that may help."""
        deadline = time.monotonic() + self._settings.retry_timeout_seconds
        for pause in self._settings.backoff.delays(self._random):
            try:
                leader = self._connected()
                if leader.wire.awaited == 0:
                    leader.send(self._request())
                return self._take(leader.receive(FetchResponse))
            except (OSError, RequestError) as error:
                self._close()
                if self._near is not None:
                    # The leader knows better, also what is out of range: a replica may have less.
                    self._near, self._stays_at_leader = None, True
                    continue
                if not may_pass(error) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
        raise AssertionError("the delays have no end")

    def _connected(self) -> BlockingConnection:
        if self._leader is None:
            address, self._leader_epoch = self._find_source()
            self._leader = self._brokers.open(address)
            self._leader.wire.receive_into(self._memory)
        return self._leader

    def _find_source(self) -> tuple[Address, Epoch]:
        view = self._brokers.ask_about(self._topic_partition.topic)
        partition = view.partition(self._topic_partition)
        leader = view.leader(self._topic_partition)
        if partition is None:
            code = view.errors.get(
                self._topic_partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            raise RequestError(code, str(self._topic_partition))
        if leader is None:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, str(self._topic_partition))
        source = leader
        if self._near is not None:
            source = view.brokers.get(NodeId(self._near), leader)
            self._stays_at_leader = source is leader
        return Address(source.host, source.port), partition.leader_epoch

    def _request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=self._topic_partition.partition,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self._position,
            partition_max_bytes=self._fetch_bytes,
        )
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._fetch_bytes,
            isolation_level=self._isolation,
            rack_id="" if self._stays_at_leader else self._settings.rack or "",
            topics=[FetchTopic(topic=self._topic_partition.topic, partitions=[partition])],
        )

    def _take(self, answer: FetchResponse) -> FetchedBatches | None:
        check(answer.error_code, f"fetch of {self._topic_partition}")
        data = next((each for topic in answer.responses for each in topic.partitions), None)
        if data is None:
            return None  # as of a Kafka that has its client wait for a quota
        what = f"{self._topic_partition} at {self._position}"
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and data.log_start_offset >= 0:
            what += f" (the log is from {data.log_start_offset} to {data.high_watermark})"
        check(data.error_code, what)
        if data.preferred_read_replica >= 0 and not self._stays_at_leader:
            self._near = data.preferred_read_replica
            self._close()
            return None
        return self._fetched(data)

    def _fetched(self, data: PartitionData) -> FetchedBatches | None:
        if data.records is None or not len(data.records):
            return None
        assert isinstance(data.records, bytes | memoryview)
        records = memoryview(data.records)
        try:
            following = next_offset(records)
        except CorruptBatch as error:
            # What is before it is good; then it is the first of what is fetched next.
            records = records[: error.at]
            following = next_offset(records)
            if following is None or following[0] <= self._position:
                at = self._topic_partition, self._position
                raise corrupt_at(*at, error, go_on=BEGIN_BEHIND) from error
        if following is None:
            raise RequestError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{self._topic_partition} at {self._position}: no whole batch in"
                f" {len(records)} bytes",
            )
        start, self._position = self._position, max(following[0], self._position)
        return FetchedBatches(
            self._topic_partition,
            start,
            self._position,
            Offset(data.high_watermark),
            following[1],
            records,
            tuple(
                (transaction.producer_id, Offset(transaction.first_offset))
                for transaction in data.aborted_transactions or ()
            ),
            Offset(data.log_start_offset),
            Offset(data.last_stable_offset),
        )
