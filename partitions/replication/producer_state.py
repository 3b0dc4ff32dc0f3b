"""Which producers' batches are in a log: a function of the log, and of nothing else."""

from __future__ import annotations

from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.storage.log import Log
from tidemark.protocol.records.header import BatchHeader


class ProducerState:
    """Follows the batches of one log, from its opening on, through truncations."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table = ProducerTable()

    def load(self, payload: bytes) -> None:
        """Go on from a snapshot. Raises `StorageError` if it is none."""
        self.table = ProducerTable.decode(payload)

    def on_batch(self, header: BatchHeader) -> None:
        self.table.append(header, header.base_offset)

    def take(self) -> bytes:
        return self.table.encode()

    def rebuild(self, log: Log) -> None:
        """The table as of the end of a log that was cut."""
        self.table = ProducerTable()
        log.observe(load_snapshot=self.load, on_batch=self.on_batch)
