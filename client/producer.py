"""Sending records: see `Producer`."""

from collections.abc import Sequence

from tidemark.client.records import RecordMetadata


class DeliveryFuture:
    """What will become of one record (or one ready batch)."""

    async def wait(self) -> RecordMetadata:
        """Where it was stored, once the broker has acknowledged it as `acks` asks.

        Raises `RequestError` with the broker's code, or with REQUEST_TIMED_OUT when the delivery
        timeout ran out; then it may be stored nevertheless. Cancelling the wait changes nothing
        about the delivery.
        """
        raise NotImplementedError


class Producer:
    """Sends records; made by `Client.producer`."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> DeliveryFuture:
        """Take one record in; it is sent in the background with others of its partition.

        Waits while the buffer is full, which is the back-pressure, and for metadata when the topic
        is new to this producer. Otherwise it yields to other tasks only when it has filled a batch,
        so that a loop over many records stays cheap. Cancelled while it waits, the record has not
        been taken. Raises `RequestError` when the topic does not exist, or the record is larger
        than any batch may be.
        """
        raise NotImplementedError

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> DeliveryFuture:
        """Take one encoded record batch (magic 2) in, to be sent as it is.

        Producer id, epoch and sequence are stamped into a copy when this producer is idempotent.
        The future's offset is that of the batch's first record.
        """
        raise NotImplementedError

    async def flush(self) -> None:
        """Send what is buffered now, without linger, and wait until all of it is settled.

        Failures show in the futures, not here.
        """
        raise NotImplementedError
