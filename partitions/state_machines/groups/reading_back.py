"""From the batches of `__consumer_offsets` to what they say: the way back from the log.

Only the last record of each key is decoded; older ones say nothing any more. What a transaction
says counts at its record's place in the log, once its marker has said so.
"""

from tidemark.partitions.state_machines.groups.records import decode_record
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.partitions.state_machines.groups.undecided import Undecided
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import BytesLike, ProducerId


class ReadBack:
    """Feed it the log in order, then take the `replay`."""

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes | None] = {}
        self._undecided: Undecided[bytes, bytes | None] = Undecided()

    def take_batch(self, data: BytesLike, header: BatchHeader, at: int) -> None:
        """The batch with that header, which lies there in `data`. Raises `CorruptBatch`."""
        producer_id = ProducerId(header.producer_id)
        if header.is_control:
            marker = read_marker(data, header, at)
            if marker is not None:
                self.end_transaction(producer_id, is_commit=marker.is_commit)
            return
        for record in decode_batch(data, header, at):
            if record.key is None:
                continue
            if header.is_transactional:
                self.take_undecided(producer_id, record.key, record.value)
            else:
                self.take(record.key, record.value)

    def take(self, key: bytes, value: bytes | None) -> None:
        self._undecided.supersede(key)
        self._set(key, value)

    def take_undecided(self, producer_id: ProducerId, key: bytes, value: bytes | None) -> None:
        self._undecided.add(producer_id, key, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        for key, value in self._undecided.end(producer_id, is_commit=is_commit):
            self._set(key, value)

    def replay(self) -> Replay:
        """Raises `MalformedMessage` if the log has what no coordinator wrote."""
        replay = Replay()
        for key, value in self._latest.items():
            record = decode_record(key, value)
            if record is not None:
                replay.apply(record)
        for producer_id, key, value in self._undecided.in_order():
            record = decode_record(key, value)
            if record is not None:
                replay.apply_undecided(record, producer_id)
        return replay

    def _set(self, key: bytes, value: bytes | None) -> None:
        # Taken out first, so that the order is that of the last writes.
        self._latest.pop(key, None)
        self._latest[key] = value
