"""What the two ways of altering configs share: which resources can be, and an answer for each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from tidemark.broker.metadata.config_resources import check_group, group_entries
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import SetBrokerConfigs, SetGroupConfigs
from tidemark.partitions.state_machines.config_table import parse_all
from tidemark.partitions.state_machines.group_configs import (
    GROUP_SETTINGS,
    GROUPS_MAX,
    NAME_BYTES_MAX,
)
from tidemark.protocol.configs import ConfigResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_configs import AlterConfigsResourceResponse
from tidemark.protocol.types import NodeId


class Resource(Protocol):
    """What is to be altered, in either request."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)
R_contra = TypeVar("R_contra", bound=Resource, contravariant=True)


Alter: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
"""What is set there after the change, of what is set there now. Raises `RequestError`."""


class Changes(Protocol[R_contra]):
    """What one resource's part of a request changes."""

    def of_topic(self, resource: R_contra, topic: Topic) -> Alter: ...

    def of_brokers(self, resource: R_contra) -> Alter: ...

    def of_group(self, resource: R_contra) -> Alter: ...


async def alter_each(
    node: Node, resources: Sequence[R], changes: Changes[R], *, validate_only: bool
) -> list[AlterConfigsResourceResponse]:
    """Alter each resource by itself; one that fails does not keep the others."""
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    asked = {(each.resource_type, each.resource_name): each for each in resources}
    answers, steps = [], Steps()
    for key, resource in asked.items():
        try:
            if times[key] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{resource.resource_name} is named more than once"
                )
            await _alter(node, resource, changes, validate_only=validate_only)
        except RequestError as error:
            answers.append(answer(resource, error))
        else:
            answers.append(answer(resource, None))
        await steps.did(1)
    return answers


def answer(resource: Resource, error: RequestError | None) -> AlterConfigsResourceResponse:
    """What became of that resource."""
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def _alter(node: Node, resource: R, changes: Changes[R], *, validate_only: bool) -> None:
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            topic = node.topics.get(resource.resource_name)
            if topic is None:
                raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            alter = changes.of_topic(resource, topic)
            await node.topics.change_configs(topic, alter, validate_only=validate_only)
        case ConfigResourceType.BROKER:
            node_id = _broker(resource.resource_name)
            await _alter_brokers(
                node, node_id, changes.of_brokers(resource), validate_only=validate_only
            )
        case ConfigResourceType.GROUP:
            check_group(resource.resource_name)
            alter = changes.of_group(resource)
            await _alter_group(node, resource.resource_name, alter, validate_only=validate_only)
        case _:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"resources of type {resource.resource_type} have no configs here",
            )


def _broker(name: str) -> NodeId | None:
    """The broker of that name; none is all of them."""
    if not name:
        return None
    try:
        return NodeId(int(name))
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{name!r} is no broker: they are named by their numbers"
        ) from None


async def _alter_brokers(
    node: Node, node_id: NodeId | None, alter: Alter, *, validate_only: bool
) -> None:
    def decide(state: ClusterState) -> SetBrokerConfigs:
        return SetBrokerConfigs(
            at_version=state.version,
            node_id=node_id,
            configs=alter(state.broker_configs.of(node_id)),
        )

    if validate_only:
        node.cluster.state.check(decide(node.cluster.state))
    else:
        await node.cluster.propose(decide)


async def _alter_group(node: Node, group_id: str, alter: Alter, *, validate_only: bool) -> None:
    def decide(state: ClusterState) -> SetGroupConfigs:
        before = state.group_configs(group_id)
        configs = alter(before)
        _check_in_time(node, configs)
        if configs and not before:
            _check_room(state, group_id)
        return SetGroupConfigs(at_version=state.version, group_id=group_id, configs=configs)

    if validate_only:
        node.cluster.state.check(decide(node.cluster.state))
    else:
        await node.cluster.propose(decide)


def _check_room(state: ClusterState, group_id: str) -> None:
    """Whether one more group may have configs. Raises `RequestError`."""
    if len(group_id.encode()) > NAME_BYTES_MAX:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"a group with configs has a name of {NAME_BYTES_MAX} bytes at most",
        )
    if len(state.groups_with_configs) >= GROUPS_MAX:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION,
            f"{GROUPS_MAX} groups have configs: delete some, or set the brokers' own",
        )


def _check_in_time(node: Node, configs: Mapping[str, str]) -> None:
    """Members have to be told to come before their sessions end."""
    values = {entry.name: entry.value for entry in group_entries(configs, node.settings)}
    interval, session = (
        values["consumer.heartbeat.interval.ms"],
        values["consumer.session.timeout.ms"],
    )
    parse_all(GROUP_SETTINGS, configs)
    assert interval is not None
    assert session is not None
    if int(interval) >= int(session):
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"consumer.heartbeat.interval.ms would be {interval}, and has to be less than "
            f"consumer.session.timeout.ms, which would be {session}",
        )
