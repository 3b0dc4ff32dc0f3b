"""DescribeConfigs: all configs of topics, this broker and groups, with defaults (trap M10)."""

from operator import attrgetter

from tidemark.broker.metadata.config_resources import (
    ConfigEntry,
    all_brokers_entries,
    broker_entries,
    check_group,
    group_entries,
    throttle_entries,
    topic_entries,
    unset_entries,
)
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps, distinct
from tidemark.protocol.configs import ConfigResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(
    node: Node, request: DescribeConfigsRequest, _context: RequestContext
) -> DescribeConfigsResponse:
    steps, results = Steps(), list[DescribeConfigsResult]()
    named = attrgetter("resource_type", "resource_name")
    shown = _Shown(node, request)
    for resource in distinct(request.resources, named):
        results.append(_describe(node, resource, shown))
        await steps.did(1 + len(results[-1].configs))
    return DescribeConfigsResponse(results=results)


class _Shown:
    """What topics do not set is the same for all of them: it is made once for a request, as entries
    and as results, and encoded once."""

    def __init__(self, node: Node, request: DescribeConfigsRequest) -> None:
        self._request = request
        self.unset = unset_entries(node.topics.defaults)
        self._of_unset = {name: _result(each, request) for name, each in self.unset.items()}

    def result(self, entry: ConfigEntry) -> DescribeConfigsResourceResult:
        if entry is self.unset.get(entry.name):
            return self._of_unset[entry.name]
        return _result(entry, self._request)


def _describe(
    node: Node, resource: DescribeConfigsResource, shown: _Shown
) -> DescribeConfigsResult:
    try:
        entries = _entries(node, resource, shown)
    except RequestError as error:
        return DescribeConfigsResult(
            error_code=error.code,
            error_message=error.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
    keys = resource.configuration_keys  # With none named, Kafka lists all, as without a list.
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[shown.result(entry) for entry in entries if not keys or entry.name in keys],
    )


def _entries(node: Node, resource: DescribeConfigsResource, shown: _Shown) -> list[ConfigEntry]:
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            topic = node.topics.get(resource.resource_name)
            if topic is None:
                node.topics.check_name(resource.resource_name)
                raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic_entries(topic, shown.unset)
        case ConfigResourceType.BROKER:
            check_broker(node, resource.resource_name)
            defaults, configs = node.topics.defaults, node.cluster.state.broker_configs
            if not resource.resource_name:
                return all_brokers_entries(defaults) + throttle_entries(configs, None)
            mine = throttle_entries(configs, node.node_id)
            return broker_entries(node.settings, defaults) + mine
        case ConfigResourceType.GROUP:
            check_group(resource.resource_name)
            of_group = node.cluster.state.group_configs(resource.resource_name)
            return group_entries(of_group, node.settings)
    raise RequestError(
        ErrorCode.INVALID_REQUEST,
        f"resources of type {resource.resource_type} have no configs here",
    )


def check_broker(node: Node, name: str) -> None:
    """Raises `RequestError` unless `name` is this broker's number, or empty for all brokers."""
    if name not in ("", str(node.node_id)):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"this is broker {node.node_id}; it knows no broker {name!r}"
        )


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
        for each in entry.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_secret,
        synonyms=synonyms if request.include_synonyms else (),
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
