"""What a gate is: it looks at a request before its handler does, and lets through what is allowed.

What is not is answered by the gate, without the handler's having heard of it. So nobody learns
from a refusal whether what was asked about is there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tidemark.broker.access.access import refusal
from tidemark.broker.steps import Steps
from tidemark.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from tidemark.protocol.errors import RequestError

if TYPE_CHECKING:
    from uuid import UUID

    from tidemark.broker.network.requests import Session
    from tidemark.broker.node import Node

CLUSTER: Final = ResourceType.CLUSTER
GROUP: Final = ResourceType.GROUP
TOPIC: Final = ResourceType.TOPIC
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID


class Visitor(NamedTuple):
    """Who has asked, and the broker that was asked."""

    node: Node
    session: Session
    api_version: int

    def may(
        self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> bool:
        return self.node.access.may(self.session, operation, resource_type, name)

    def refused(
        self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> RequestError | None:
        """The error that says that it may not; `None` if it may."""
        if self.may(operation, resource_type, name):
            return None
        error = refusal(self.session, operation, resource_type, name)
        self.node.access.on_refused(error)
        return error

    def demand(
        self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> None:
        """Raises the `RequestError` that says that it may not."""
        error = self.refused(operation, resource_type, name)
        if error is not None:
            raise error

    def name_of(self, topic_id: UUID) -> str | None:
        """What a topic is called that is asked for by its id; `None` if nobody has that id."""
        topic = self.node.topics.by_id(topic_id)
        return None if topic is None else topic.name


# Any: requests and responses of whichever API it is; each gate states its own.
class Passed(NamedTuple):
    """What a gate lets through, and what becomes of the answer."""

    request: Any
    """What the handler is asked; `None`: nothing."""
    finish: Callable[[Any], Any] | None = None
    """Makes the client's answer of the handler's; given `None` where the handler is not asked."""
    is_lasting: bool = True
    """Whether a request like it is let through as long as no ACL changes."""

    def then(self, finish: Callable[[Any], Any]) -> Passed:
        """The same, with `finish` done to the answer at the end."""
        before = self.finish
        if before is None:
            return self._replace(finish=finish)
        return self._replace(finish=lambda response: finish(before(response)))


Looking: TypeAlias = Generator[int, None, Passed]
"""Yields how many elements it is about to look at: a request may have tens of thousands, and who
can wait lets others have their turn in between."""
Gate: TypeAlias = Callable[[Visitor, Any], Passed | Looking]
"""Raises `RequestError` where the whole request is refused, or has its `Looking` raise it."""


def at_once(looked: Passed | Looking) -> Passed:
    """What a gate lets through, for who cannot wait."""
    if isinstance(looked, Passed):
        return looked
    try:
        while True:
            next(looked)
    except StopIteration as over:
        passed: Passed = over.value
        return passed


async def in_steps(looked: Passed | Looking) -> Passed:
    """As `at_once`, with others' turns in between."""
    if isinstance(looked, Passed):
        return looked
    steps = Steps()
    try:
        while True:
            await steps.did(next(looked))
    except StopIteration as over:
        passed: Passed = over.value
        return passed


def open_to_all(_visitor: Visitor, request: Any) -> Passed:
    return Passed(request)
