"""Produce requests that come together, and what they are answered."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.broker.handlers.produce_connection import VERSION, Connection
from tests.broker.handlers.producing import batch
from tidemark.broker.network.calls import Call
from tidemark.broker.network.send_queue import Part
from tidemark.broker.node import Node
from tidemark.partitions.storage.log import Log
from tidemark.protocol.frames import decode_response
from tidemark.protocol.messages.produce import ProduceResponse
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Epoch, Offset

Connect = Callable[[Node], Connection]
Given = Sequence[tuple[int, Call | list[Part] | None]]


@pytest.fixture
def appends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches each append had."""
    seen: list[int] = []
    append = Log.append_run

    def counted(
        log: Log, batches: Sequence[memoryview], headers: Sequence[BatchHeader], epoch: Epoch
    ) -> Offset:
        seen.append(len(batches))
        return append(log, batches, headers, epoch)

    monkeypatch.setattr(Log, "append_run", counted)
    return seen


def responses(given: Given, version: int = VERSION) -> Iterator[tuple[int, ProduceResponse]]:
    """All answers in their order, each with the number of the request that it answers."""
    for _, answer in given:
        parts = answer.parts if isinstance(answer, Call) else answer
        assert parts is not None
        stream = b"".join(part for part in parts if isinstance(part, bytes))
        while stream:
            end = 4 + int.from_bytes(stream[:4], "big")
            number, response = decode_response(APIS[0], version, stream[4:end])
            assert isinstance(response, ProduceResponse)
            yield number, response
            stream = stream[end:]


def idempotent(sequence: int, *, value: bytes | None = None, producer_id: int = 7) -> bytes:
    value = b"%d" % sequence if value is None else value
    return batch(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
