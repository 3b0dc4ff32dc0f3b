"""Reading records: see `Consumer`."""

from collections.abc import Mapping

from tidemark.client.descriptions import CommittedOffset
from tidemark.client.offsets import Start
from tidemark.client.records import ConsumerRecord, FetchedBatches
from tidemark.protocol.types import Offset, TopicPartition


class Consumer:
    """Reads records; made by `Client.consumer`. An async iterator of `ConsumerRecord`.

    Positions count what was handed out. A group's automatic commits leave out the record that is
    in the caller's hands; asking for the next one says that it is done with.
    """

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now; in a group it changes with each rebalance."""
        raise NotImplementedError

    def __aiter__(self) -> "Consumer":
        return self

    async def __anext__(self) -> ConsumerRecord:
        """The next record; ends (`StopAsyncIteration`) only with `until_end`.

        Raises `RequestError`: OFFSET_OUT_OF_RANGE where no reset policy is set, and what no retry
        can mend. Yields to other tasks only when it needs new data. Cancelled, no record is lost.
        """
        raise NotImplementedError

    async def fetch(self) -> list[ConsumerRecord]:
        """The next records, as many as one fetch brought of one partition; never empty, except
        at the end with `until_end`. Faster than iterating."""
        raise NotImplementedError

    async def fetch_batches(self) -> FetchedBatches | None:
        """The next record batches, undecoded; None at the end with `until_end`."""
        raise NotImplementedError

    def position(self, topic_partition: TopicPartition) -> Offset:
        """The offset of the next record to be handed out. `KeyError` if it is not assigned."""
        raise NotImplementedError

    async def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """Go on from there; what was fetched ahead of it is dropped."""
        raise NotImplementedError

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing more of these until `resume`, and keep the positions."""
        raise NotImplementedError

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        raise NotImplementedError

    async def commit(
        self, offsets: Mapping[TopicPartition, Offset | CommittedOffset] | None = None
    ) -> None:
        """Commit these next offsets for the group, or the positions of all that is assigned.

        The record in the caller's hands counts as done. Raises `RequestError` when the group has
        moved on without this member (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, ...).
        """
        raise NotImplementedError

    async def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """The group's commits for what is assigned; partitions without one are left out."""
        raise NotImplementedError

    async def beginning_offsets(self) -> dict[TopicPartition, Offset]:
        """The log start of everything assigned, asked for now."""
        raise NotImplementedError

    async def end_offsets(self) -> dict[TopicPartition, Offset]:
        """The end (exclusive) of everything assigned, asked for now."""
        raise NotImplementedError
