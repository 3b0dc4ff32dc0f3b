"""What a partition's leader does with the sequences of one idempotent producer."""

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.records.records import decode_records


class SequenceModel:
    """Remembers five batches, answers their repetitions, and refuses gaps and batches of more than
    `records_max`. `log` is the values."""

    def __init__(self, *, records_max: int = 1000) -> None:
        self._records_max = records_max
        self.log: list[bytes | None] = []
        self._epoch = -1
        self._next = 0
        self._recent: list[tuple[int, int]] = []

    def append(self, data: bytes | bytearray) -> tuple[ErrorCode, int]:
        header = check_batch(data)
        if header.record_count > self._records_max:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_epoch < self._epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > self._epoch:
            if self._epoch >= 0 and header.base_sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self._epoch, self._next, self._recent = header.producer_epoch, header.base_sequence, []
        for sequence, offset in self._recent:
            if sequence == header.base_sequence:
                return ErrorCode.NONE, offset
        if header.base_sequence != self._next:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = len(self.log)
        self.log += [record.value for record in decode_records(data)]
        self._next += header.record_count
        self._recent = [*self._recent, (header.base_sequence, offset)][-5:]
        return ErrorCode.NONE, offset
