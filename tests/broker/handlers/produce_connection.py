"""A connection that produces, and what of that had to be decoded."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.broker.handlers.decoding import count_decoded
from tests.broker.nodes import context
from tidemark.broker.handlers import produce
from tidemark.broker.network.calls import Call
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import Session
from tidemark.broker.network.send_queue import Part
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.registry import APIS

VERSION = 9


def never(run: Callable[[], Coroutine[Any, Any, None]]) -> None:  # Any: what it yields to trio
    raise AssertionError("no handler here is async")


@dataclass
class Connection:
    """Asks as one connection does, and counts what had to be decoded."""

    node: Node
    session: Session
    dispatcher: Dispatcher
    decoded: list[int]
    number: int = 0

    def ask(self, asked: ProduceRequest, version: int = VERSION) -> Call | list[Part] | None:
        ((count, given),) = self.ask_all([asked], version)
        assert count == 1
        return given

    def ask_all(
        self, asked: Sequence[ProduceRequest], version: int = VERSION
    ) -> list[tuple[int, Call | list[Part] | None]]:
        """Requests that come together: what each visit of the dispatcher takes, and gives."""
        frames = []
        for each in asked:
            self.number += 1
            encoded = bytearray(encode_request(each, version, self.number, "c"))
            frames.append(memoryview(encoded)[4:])
        given = []
        while frames:
            count, answer = self.dispatcher.dispatch(frames, self.session, 0.0)
            del frames[:count]
            given.append((count, answer))
        return given

    def answer(self, asked: ProduceRequest, version: int = VERSION) -> PartitionProduceResponse:
        given = self.ask(asked, version)
        return self.read(given.parts if isinstance(given, Call) else given, version)

    def read(self, parts: list[Part] | None, version: int = VERSION) -> PartitionProduceResponse:
        assert parts is not None
        frame = b"".join(part for part in parts if isinstance(part, bytes))
        number, response = decode_response(APIS[0], version, frame[4:])
        assert number == self.number
        assert isinstance(response, ProduceResponse)
        return response.responses[0].partition_responses[0]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[[Node], Connection]:
    decoded = count_decoded(monkeypatch)

    def of(node: Node) -> Connection:
        odd_events = OddEvents(logging.getLogger("test"))
        dispatcher = Dispatcher(node, {0: produce.handle}, spawn=never, odd_events=odd_events)
        return Connection(node, context(VERSION).session, dispatcher, decoded)

    return of


def values(replica: Replica) -> list[bytes | None]:
    found = replica.read(replica.log_start, bytes_max=1_000_000, at_least_one=True).read()
    return [record.value for record in decode_records(found)]
