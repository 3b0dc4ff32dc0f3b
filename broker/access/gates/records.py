"""The gates of what is written and read."""

from __future__ import annotations

from typing import Final

from tidemark.broker.access.access import principal_of
from tidemark.broker.access.gate import TRANSACTIONAL_ID, Looking, Passed, Visitor
from tidemark.broker.access.gates.partitions import At, PartitionGate
from tidemark.broker.network.requests import Unanswerable
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.confirm_leadership import ConfirmLeadershipResponse
from tidemark.protocol.messages.delete_records import DeleteRecordsResponse
from tidemark.protocol.messages.describe_producers import DescribeProducersResponse
from tidemark.protocol.messages.fetch import FetchRequest, FetchResponse
from tidemark.protocol.messages.list_offsets import ListOffsetsResponse
from tidemark.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from tidemark.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidemark.protocol.records.header import says_transactional

_BEGINS: Final = 0
"""The epoch of a fetch that asks for a session, and says in full what it wants."""

_NO_SESSION: Final = (0, 0)


def _transaction(visitor: Visitor, request: ProduceRequest) -> None:
    if request.transactional_id is not None:
        visitor.demand(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    elif _has_transactional(request):
        # The log knows who has a transaction open, and asks nobody: it would take a batch that says
        # to be of another's.
        error = RequestError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            f"{principal_of(visitor.session)} may not write in a transaction without its id",
        )
        visitor.node.access.on_refused(error)
        raise error


def _has_transactional(request: ProduceRequest) -> bool:
    return any(
        says_transactional(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    )


_PRODUCE: Final = PartitionGate(
    operation=Operation.WRITE,
    response=ProduceResponse,
    asked=At("topic_data", "name", "partition_data", "index"),
    answered=At("responses", "name", "partition_responses", "index"),
    for_all=_transaction,
)

_FETCH: Final = PartitionGate(
    operation=Operation.READ,
    response=FetchResponse,
    asked=At("topics", "topic", "partitions", "partition"),
    answered=At("responses", "topic", "partitions", "partition_index"),
)


def produce(visitor: Visitor, request: ProduceRequest) -> Looking:
    passed = yield from _PRODUCE(visitor, request)
    if request.acks == 0 and passed.request is not request:
        raise Unanswerable("a request with acks=0 may not write all that it has")
    return passed


def fetch(visitor: Visitor, request: FetchRequest) -> Looking:
    """In a fetch session the broker knows the partitions, and the gate does not see them: it goes
    on for who has begun it, on the same connection, and until an ACL changes. A client whose
    session is not known any more says again what it wants."""
    connection, revision = visitor.session, visitor.node.access.revision
    if request.session_epoch > _BEGINS and connection.allowed_fetch_session != (
        request.session_id,
        revision,
    ):
        code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return Passed(None, lambda _: FetchResponse(error_code=code, responses=()))
    passed = yield from _FETCH(visitor, request)
    if not passed.is_lasting:
        # The session would go on with what nobody has looked at.
        connection.allowed_fetch_session = _NO_SESSION
        return passed
    if request.session_epoch != _BEGINS or passed.request is None:
        return passed

    def begun(response: FetchResponse) -> FetchResponse:
        connection.allowed_fetch_session = response.session_id, revision
        return response

    return passed.then(begun)


list_offsets: Final = PartitionGate(operation=Operation.DESCRIBE, response=ListOffsetsResponse)

confirm_leadership: Final = PartitionGate(
    operation=Operation.DESCRIBE,
    response=ConfirmLeadershipResponse,
    asked=At(topic="topic"),
    answered=At(topic="topic", partition="partition"),
)

offset_for_leader_epoch: Final = PartitionGate(
    operation=Operation.DESCRIBE,
    response=OffsetForLeaderEpochResponse,
    asked=At(topic="topic", partition="partition"),
    answered=At(topic="topic", partition="partition"),
)

delete_records: Final = PartitionGate(operation=Operation.DELETE, response=DeleteRecordsResponse)

describe_producers: Final = PartitionGate(
    operation=Operation.READ,
    response=DescribeProducersResponse,
    asked=At(partitions="partition_indexes"),
)
