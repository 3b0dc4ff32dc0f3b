"""DescribeRebalances: why groups rebalanced, the last few times."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import distinct
from tidemark.partitions.state_machines.groups.history import Rebalance
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_rebalances import (
    DescribedRebalance,
    DescribedRebalances,
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
)


def handle(
    node: Node, request: DescribeRebalancesRequest, context: RequestContext
) -> DescribeRebalancesResponse:
    return DescribeRebalancesResponse(
        groups=[_of(node, group_id) for group_id in distinct(request.groups)]
    )


def _of(node: Node, group_id: str) -> DescribedRebalances:
    try:
        rebalances = node.coordinator.rebalances(group_id)
        if rebalances is None:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND)
    except RequestError as error:
        return DescribedRebalances(group_id=group_id, error_code=error.code)
    return DescribedRebalances(
        group_id=group_id, rebalances=[_described(rebalance) for rebalance in rebalances]
    )


def _described(rebalance: Rebalance) -> DescribedRebalance:
    return DescribedRebalance(
        generation=rebalance.generation,
        at_ms=rebalance.at_ms,
        reasons=rebalance.reasons,
        more_reasons=rebalance.more_reasons,
    )
