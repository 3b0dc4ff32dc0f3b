"""What becomes of a record: the future that `Producer.send` returns."""

import trio

from tidemark.client.batches import Batch, Failed, Split
from tidemark.client.records import RecordMetadata
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NO_OFFSET, Offset


class DeliveryFuture:
    """What will become of one record (or one ready batch)."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: Batch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    @property
    def is_done(self) -> bool:
        return self._batch.outcome is not None

    def result(self) -> RecordMetadata:
        """As `wait`, without waiting. Raises `ValueError` while it is not `is_done`."""
        batch, index = self._batch, self._index
        while isinstance(outcome := batch.outcome, Split):
            first, second = outcome.halves
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        if outcome is None:
            raise ValueError("the delivery is not settled yet: wait for it, or flush the producer")
        if isinstance(outcome, Failed):
            # One of its own for each who asks: an exception collects tracebacks.
            raise RequestError(outcome.error.code, outcome.error.message)
        offset = NO_OFFSET if outcome.base_offset < 0 else outcome.base_offset + index
        stamped = outcome.append_time_ms >= 0
        return RecordMetadata(
            self._batch.topic,
            self._batch.partition,
            Offset(offset),
            outcome.append_time_ms if stamped else self._timestamp_ms,
        )

    async def wait(self) -> RecordMetadata:
        """Where it was stored, once the broker has acknowledged it as `acks` asks.

        Raises `RequestError` with the broker's code, or with REQUEST_TIMED_OUT when the delivery
        timeout ran out; then it may be stored nevertheless. Cancelling the wait changes nothing
        about the delivery.
        """
        await wait_settled(self._batch)
        return self.result()


async def wait_settled(batch: Batch) -> None:
    """Until the batch has an outcome."""
    if batch.outcome is None:
        settled = trio.Event()
        batch.when_settled.append(settled.set)
        await settled.wait()
