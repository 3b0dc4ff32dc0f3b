"""What only the leader of the cluster's metadata answers, and how any other broker has it answered.

Any broker takes any of these requests, and clients see no difference (trap M7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tidemark.protocol.errors import RequestError
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.requests import RequestContext
    from tidemark.broker.node import Node
    from tidemark.protocol.schema import Message

_DEFAULT_TIMEOUT_MS: Final = 30_000
"""Of requests that state none."""


def _always(_request: object) -> bool:
    return True


# Any: the handlers of several APIs are looked up here; each states its own messages.
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One API that changes the metadata, or asks how their group is."""

    handle: Callable[[Node, Any, RequestContext], Coroutine[Any, Any, Any]]
    """Answers on the leader."""
    response: type[Message]
    refuse: Callable[[Any, RequestError], Any] | None = None
    """The response to a request that came to nothing as a whole; one of a response that has an
    error code for the whole needs none."""
    may_repeat: bool = False
    """Whether a second time does no harm, if nobody knows about the first."""
    afterwards: Callable[[Node, Any, Any], Awaitable[Any]] | None = None
    """What the broker that was asked makes of the answer; it may wait there for what is to come."""
    is_for_leader: Callable[[Any], bool] = _always
    """Whether a request is one of these; any broker answers the others itself."""

    def refused(self, request: Any, error: RequestError, api_version: int) -> Any:
        """The response to a request that came to nothing, as far as that version can say it.

        Raises `error` where the response has one error for the whole."""
        if self.refuse is None:
            raise error
        response = self.refuse(request, error)
        unsayable = {
            field.name: field.default
            for field in response.wire_fields
            if not field.exists_in(api_version)
        }
        return replace(response, **unsayable) if unsayable else response

    async def answer(self, node: Node, request: Any, context: RequestContext) -> Any:
        """For any broker's clients: the handler of this API."""
        if not self.is_for_leader(request):
            return await self.handle(node, request, context)

        async def here() -> Any:
            return await self.handle(node, request, context)

        try:
            response = await node.controller.answer(
                request,
                context,
                here,
                response=self.response,
                timeout_ms=getattr(request, "timeout_ms", _DEFAULT_TIMEOUT_MS),
                may_repeat=self.may_repeat,
            )
        except RequestError as error:
            return self.refused(request, error, context.api_version)
        return (
            response if self.afterwards is None else await self.afterwards(node, request, response)
        )
