"""From the batches of `__transaction_state` to what they say: the way back from the log.

Only the last record of each id is decoded; older ones say nothing any more.
"""

from tidemark.partitions.state_machines.transactions.records import decode_record
from tidemark.partitions.state_machines.transactions.transaction import Transaction
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import BytesLike


class ReadBack:
    """Feed it the log in order, then take the `values`."""

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes | None] = {}

    def take_batch(self, data: BytesLike, header: BatchHeader, at: int) -> None:
        """The batch with that header, which lies there in `data`. Raises `CorruptBatch`."""
        for record in () if header.is_control else decode_batch(data, header, at):
            if record.key is not None:
                self._latest[record.key] = record.value

    def values(self) -> dict[str, Transaction]:
        """The ids. Raises `MalformedMessage` if the log has what no coordinator wrote."""
        found = {}
        for key, value in self._latest.items():
            record = decode_record(key, value)
            if record is not None and record[1] is not None:
                found[record[0]] = record[1]
        return found
