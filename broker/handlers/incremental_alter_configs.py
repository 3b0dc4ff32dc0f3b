"""IncrementalAlterConfigs: single configs are set, deleted, appended to or subtracted from."""

from collections.abc import Container
from typing import Final

from tidemark.broker.config import SETTINGS
from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.config_changes import Alter, alter_each, answer
from tidemark.broker.metadata.running_configs import RUNNING_SETTINGS, changed
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.config_changes import (
    ConfigChange,
    altered,
    altered_in,
)
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_BROKERS_NAMES: Final = RUNNING_SETTINGS.keys() | SETTINGS.keys()


async def handle(
    node: Node, request: IncrementalAlterConfigsRequest, _context: RequestContext
) -> IncrementalAlterConfigsResponse:
    responses = await alter_each(
        node, request.resources, _Changing(), validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=responses)


class _Changing:
    """What is not named stays."""

    def of_topic(self, resource: AlterConfigsResource, topic: Topic) -> Alter:
        changes = _changes(resource, TOPIC_SETTINGS)
        return lambda before: altered(before, changes, topic.defaults)

    def of_brokers(self, resource: AlterConfigsResource) -> Alter:
        changes = _changes(resource, _BROKERS_NAMES)
        return lambda before: changed(before, changes)

    def of_group(self, resource: AlterConfigsResource) -> Alter:
        changes = _changes(resource, GROUP_SETTINGS)
        return lambda before: altered_in(GROUP_SETTINGS, before, changes)


def _changes(resource: AlterConfigsResource, known: Container[str]) -> list[ConfigChange]:
    """Without the deletions of what cannot have been set: as with Kafka, they have succeeded.

    `kafka-reassign-partitions --verify` ends with one: it takes the throttle of copies between a
    broker's directories away, too. MirrorMaker sends one for each config that has its default in
    the cluster it copies from, and that may be a newer Kafka with more of them.
    """
    changes = map(_change, resource.configs)
    return [each for each in changes if each.op is not AlterOp.DELETE or each.name in known]


def _change(config: AlterableConfig) -> ConfigChange:
    try:
        op = AlterOp(config.config_operation)
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"there is no operation {config.config_operation}"
        ) from None
    return ConfigChange(name=config.name, op=op, value=config.value)


def refuse(
    request: IncrementalAlterConfigsRequest, error: RequestError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[answer(each, error) for each in request.resources]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=IncrementalAlterConfigsResponse)
