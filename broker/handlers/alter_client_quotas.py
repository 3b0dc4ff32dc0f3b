"""AlterClientQuotas: quotas are set and removed, on the leader of the metadata."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.client_quotas import QuotaChange, entity_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterQuotas
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import alter_client_quotas_response as answers
from tidemark.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: AlterClientQuotasRequest, _context: RequestContext
) -> answers.AlterClientQuotasResponse:
    """Each entity by itself: one that is refused does not keep the others."""
    entries, steps = list[answers.EntryData](), Steps()
    for entry in request.entries:
        try:
            await _alter(node, entry, validate_only=request.validate_only)
        except RequestError as error:
            entries.append(_answer(entry, error))
        else:
            entries.append(_answer(entry, None))
        await steps.did(1 + len(entry.ops))
    return answers.AlterClientQuotasResponse(entries=entries)


def refuse(
    request: AlterClientQuotasRequest, error: RequestError
) -> answers.AlterClientQuotasResponse:
    """The response to a request that came to nothing."""
    return answers.AlterClientQuotasResponse(
        entries=[_answer(entry, error) for entry in request.entries]
    )


async def _alter(node: Node, entry: EntryData, *, validate_only: bool) -> None:
    change = _change(entry)

    def decide(state: ClusterState) -> AlterQuotas:
        return AlterQuotas(at_version=state.version, changes=(change,))

    if validate_only:
        node.cluster.state.check(decide(node.cluster.state))
    else:
        await node.cluster.propose(decide)


def _change(entry: EntryData) -> QuotaChange:
    twice = [key for key, times in Counter(op.key for op in entry.ops).items() if times > 1]
    if twice:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{twice[0]} is changed twice: send one change"
        )
    return QuotaChange(
        entity=entity_of((each.entity_type, each.entity_name) for each in entry.entity),
        values={op.key: None if op.remove else op.value for op in entry.ops},
    )


def _answer(entry: EntryData, error: RequestError | None) -> answers.EntryData:
    return answers.EntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=[
            answers.EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
            for each in entry.entity
        ],
    )


CHANGE: Final = Change(
    handle=handle, refuse=refuse, response=answers.AlterClientQuotasResponse, may_repeat=True
)
