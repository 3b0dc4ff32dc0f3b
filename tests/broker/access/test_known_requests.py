"""Requests that are known again pass no gate: they were allowed whole, and no ACL has changed."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.broker.access.conftest import Guarded, allowed
from tests.broker.handlers.decoding import count_decoded
from tests.broker.handlers.fetching import Want, asking
from tests.broker.handlers.producing import batch, new_topic, request
from tests.broker.nodes import context
from tidemark.broker.network.calls import Call
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import Session
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.protocol.acls import Operation, ResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message
from tidemark.protocol.types import ProducerId

VERSIONS = {0: 9, 1: 12}
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def records_in(replica: Replica) -> int:
    return replica.log_end


WRITE: Acl = allowed(Operation.WRITE, ResourceType.TOPIC, "t")
READ: Acl = allowed(Operation.READ, ResourceType.TOPIC, "t")


def never(run: Callable[[], Coroutine[Any, Any, None]]) -> None:  # Any: what it yields to trio
    raise AssertionError("no handler here is async")


@dataclass
class Connection:
    """Asks as one connection does, and counts what had to be decoded."""

    guard: Guarded
    decoded: list[int]
    session: Session = field(default_factory=lambda: context(9).session)

    def __post_init__(self) -> None:
        self.session.user = "alice"
        self._dispatcher = Dispatcher(
            self.guard.node,
            self.guard.handlers,
            spawn=never,
            odd_events=OddEvents(logging.getLogger("test")),
        )

    def visit(self, *asked: Message) -> list[Call | list[Any] | None]:
        """Requests that come together; what each visit of the dispatcher gives. Any: parts."""
        key = 0 if isinstance(asked[0], ProduceRequest) else 1
        frames = [
            memoryview(bytearray(encode_request(each, VERSIONS[key], number, "c")))[4:]
            for number, each in enumerate(asked)
        ]
        given = []
        while frames:
            count, answer = self._dispatcher.dispatch(frames, self.session, 0.0)
            del frames[:count]
            given.append(answer)
        return given

    def ask(self, asked: Message) -> int:
        """The error of the only partition."""
        (given,) = self.visit(asked)
        parts = given.parts if isinstance(given, Call) else given
        assert parts is not None
        data = b"".join(part if isinstance(part, bytes) else part.read() for part in parts)  # type: ignore[union-attr]  # a LogSlice
        key = 0 if isinstance(asked, ProduceRequest) else 1
        _, answer = decode_response(APIS[key], VERSIONS[key], data[4:])
        (topic,) = answer.responses  # type: ignore[attr-defined]  # both have them
        (partition,) = topic.partition_responses if key == 0 else topic.partitions
        code: int = partition.error_code
        return code


@pytest.fixture
def connection(guard: Guarded, monkeypatch: pytest.MonkeyPatch) -> Connection:
    decoded = count_decoded(monkeypatch)
    return Connection(guard, decoded)


@pytest.mark.parametrize("is_produce", [True, False])
async def test_they_are_decoded_again_when_an_acl_has_changed_and_refused_where_it_is_gone(
    guard: Guarded, connection: Connection, *, is_produce: bool
) -> None:
    await new_topic(guard.node, flush="os")
    await guard.alter(added=[WRITE])
    assert connection.ask(request(batch())) == 0
    acl = WRITE if is_produce else READ
    await guard.alter(added=[acl])

    def ask() -> int:
        return connection.ask(request(batch()) if is_produce else asking(Want()))

    ask()
    connection.decoded.clear()
    assert [ask() for _ in range(5)] == [0] * 5
    assert connection.decoded == [], "they are known"
    await guard.alter(added=[allowed(Operation.READ, ResourceType.TOPIC, "other")])
    assert [ask() for _ in range(3)] == [0] * 3
    assert len(connection.decoded) == 1
    await guard.alter(removed=[acl])
    assert [ask() for _ in range(3)] == [REFUSED] * 3
    await guard.alter(added=[acl])
    assert ask() == 0


async def test_what_is_refused_is_never_known(guard: Guarded, connection: Connection) -> None:
    replica = await new_topic(guard.node, flush="os")
    assert [connection.ask(request(batch())) for _ in range(3)] == [REFUSED] * 3
    assert len(connection.decoded) == 3
    assert records_in(replica) == 0


def spread(*topics: str, acks: int = 1) -> ProduceRequest:
    """Two batches for each: requests that are gathered."""
    data = [
        TopicProduceData(
            name=topic,
            partition_data=[PartitionProduceData(index=0, records=batch())],
        )
        for topic in topics
    ]
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=data)


async def test_in_a_burst_each_request_is_looked_at(guard: Guarded, connection: Connection) -> None:
    mine = [(await new_topic(guard.node, name, flush="os")) for name in ("t", "u")]
    hers = await new_topic(guard.node, "hers", flush="os")
    await guard.alter(
        added=[allowed(Operation.WRITE, ResourceType.TOPIC, name) for name in ("t", "u")]
    )
    connection.visit(spread("t", "u"))
    assert connection.session.gathers
    given = connection.visit(spread("t", "u"), spread("t", "u"), spread("t", "hers"))
    assert len(given) == 2, "the third by itself"
    assert [records_in(replica) for replica in mine] == [4, 3]
    assert records_in(hers) == 0


async def test_what_waits_for_no_answer_loses_its_connection_and_writes_nothing(
    guard: Guarded, connection: Connection
) -> None:
    replica, hers = [await new_topic(guard.node, name, flush="os") for name in ("t", "hers")]
    await guard.alter(added=[WRITE])
    (given,) = connection.visit(spread("t", "hers", acks=0))
    assert isinstance(given, Call)
    assert given.end is not None
    assert (records_in(replica), records_in(hers)) == (0, 0)


async def test_of_a_request_what_is_allowed_is_done(guard: Guarded, connection: Connection) -> None:
    mine, hers = [await new_topic(guard.node, name, flush="os") for name in ("t", "hers")]
    await guard.alter(added=[WRITE])
    answer = await guard.ask("alice", spread("t", "hers"), 9)
    assert {
        topic.name: [each.error_code for each in topic.partition_responses]
        for topic in answer.responses
    } == {"t": [0], "hers": [REFUSED]}
    assert (records_in(mine), records_in(hers)) == (1, 0)


async def test_nobody_writes_in_a_transaction_without_its_id(
    guard: Guarded, connection: Connection
) -> None:
    replica, _ = [await new_topic(guard.node, name, flush="os") for name in ("t", "u")]
    await guard.alter(
        added=[allowed(Operation.WRITE, ResourceType.TOPIC, name) for name in ("t", "u")]
    )
    ours: dict[str, Any] = {
        "producer_id": 7,
        "producer_epoch": 0,
        "is_transactional": True,
    }  # Any: fields
    # It is open, as another's: the log says so, and is not in doubt.
    replica.verifications.begin(ProducerId(7), 0).settle(None)
    opening = memoryview(bytearray(batch(base_sequence=0, **ours)))
    replica.produce(opening, api_version=9)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    theirs = request(batch(base_sequence=1, **ours), acks=1)
    assert connection.ask(theirs) == refused
    assert connection.ask(request(batch(), acks=1)) == 0
    assert connection.ask(theirs) == refused, "also if its like is known"
    burst = spread("t", "u")
    connection.visit(burst)
    evil = [
        TopicProduceData(
            name=topic,
            partition_data=[PartitionProduceData(index=0, records=theirs_or_plain)],
        )
        for topic, theirs_or_plain in (("t", batch(base_sequence=1, **ours)), ("u", batch()))
    ]
    end = records_in(replica)
    connection.visit(burst, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=evil), burst)
    assert records_in(replica) == end + 2
