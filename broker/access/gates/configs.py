"""The gates of configs: of topics, of groups, and of brokers, which are the cluster's business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidemark.broker.access.gate import CLUSTER, GROUP, TOPIC, Visitor
from tidemark.broker.access.gates.each import Check, EachGate
from tidemark.broker.metadata.config_resources import ResourceType as ConfigResource
from tidemark.partitions.state_machines.access.acls import Operation
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.alter_configs import AlterConfigsResponse
from tidemark.protocol.messages.describe_configs import DescribeConfigsResponse
from tidemark.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

_NAMES: Final[Mapping[str, str]] = {
    "resource_type": "resource_type",
    "resource_name": "resource_name",
}
_HAVE_NAMES: Final = {ConfigResource.TOPIC: TOPIC, ConfigResource.GROUP: GROUP}


def _of_resource(operation: Operation) -> Check:
    def check(visitor: Visitor, resource: Any) -> RequestError | None:
        of_its_own = _HAVE_NAMES.get(resource.resource_type)
        if of_its_own is None:
            return visitor.refused(operation, CLUSTER)
        return visitor.refused(operation, of_its_own, resource.resource_name)

    return check


describe_configs: Final = EachGate(
    check=_of_resource(Operation.DESCRIBE_CONFIGS),
    response=DescribeConfigsResponse,
    asked="resources",
    answered="results",
    echoed=_NAMES,
)

alter_configs: Final = EachGate(
    check=_of_resource(Operation.ALTER_CONFIGS),
    response=AlterConfigsResponse,
    asked="resources",
    answered="responses",
    echoed=_NAMES,
)

incremental_alter_configs: Final = EachGate(
    check=_of_resource(Operation.ALTER_CONFIGS),
    response=IncrementalAlterConfigsResponse,
    asked="resources",
    answered="responses",
    echoed=_NAMES,
)
