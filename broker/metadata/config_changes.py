"""What the two ways of altering configs share: which resources can be, and an answer for each."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from tidemark.broker.metadata.config_resources import ResourceType
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError


class Resource(Protocol):
    """What is to be altered, in either request."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)


class Outcome(NamedTuple):
    """What came of it: `NONE`, or an error and a sentence."""

    code: ErrorCode
    message: str | None


async def alter_each(
    node: Node, resources: Sequence[R], alter: Callable[[Topic, R], Awaitable[None]]
) -> list[tuple[R, Outcome]]:
    """Alter each resource by itself; one that fails does not keep the others."""
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    asked = {(each.resource_type, each.resource_name): each for each in resources}
    outcomes = []
    for key, resource in asked.items():
        try:
            if times[key] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{resource.resource_name} is named more than once"
                )
            await alter(_topic(node, resource), resource)
        except RequestError as error:
            outcomes.append((resource, Outcome(error.code, error.message)))
        else:
            outcomes.append((resource, Outcome(ErrorCode.NONE, None)))
    return outcomes


def _topic(node: Node, resource: Resource) -> Topic:
    if resource.resource_type == ResourceType.BROKER:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "a broker's settings do not change while it runs: change its file and start it again",
        )
    if resource.resource_type != ResourceType.TOPIC:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"resources of type {resource.resource_type} have no configs here",
        )
    topic = node.topics.get(resource.resource_name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic
