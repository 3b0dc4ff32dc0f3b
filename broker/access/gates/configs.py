"""The gates of configs: of topics, of groups, and of brokers, which are the cluster's business."""

from __future__ import annotations

from typing import Any, Final

from tidemark.broker.access.gate import CLUSTER, GROUP, TOPIC, Visitor
from tidemark.broker.access.gates.each import EachGate
from tidemark.protocol.acls import Operation
from tidemark.protocol.configs import ConfigResourceType
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.alter_configs import AlterConfigsResponse
from tidemark.protocol.messages.describe_configs import DescribeConfigsResponse
from tidemark.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tidemark.protocol.schema import Message

_HAVE_NAMES: Final = {ConfigResourceType.TOPIC: TOPIC, ConfigResourceType.GROUP: GROUP}


def _on_each(operation: Operation, response: type[Message], *, answered: str) -> EachGate:
    def check(visitor: Visitor, resource: Any) -> RequestError | None:
        of_its_own = _HAVE_NAMES.get(resource.resource_type)
        if of_its_own is None:
            return visitor.refused(operation, CLUSTER)
        return visitor.refused(operation, of_its_own, resource.resource_name)

    return EachGate(
        check=check,
        response=response,
        asked="resources",
        answered=answered,
        echoed={"resource_type": "resource_type", "resource_name": "resource_name"},
    )


describe_configs: Final = _on_each(
    Operation.DESCRIBE_CONFIGS, DescribeConfigsResponse, answered="results"
)
alter_configs: Final = _on_each(Operation.ALTER_CONFIGS, AlterConfigsResponse, answered="responses")
incremental_alter_configs: Final = _on_each(
    Operation.ALTER_CONFIGS, IncrementalAlterConfigsResponse, answered="responses"
)
