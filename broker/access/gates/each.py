"""The gate of requests that name things one by one, each of which is answered by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tidemark.broker.access.gate import Looking, Passed, Visitor
from tidemark.broker.access.gates.partitions import element_of
from tidemark.broker.network.error_responses import filled, said_of
from tidemark.protocol.acls import Operation, ResourceType
from tidemark.protocol.errors import RequestError
from tidemark.protocol.schema import Message
from tidemark.protocol.values import dataclass

# Any: elements of requests of whichever API it is.
Check: TypeAlias = Callable[[Visitor, Any], RequestError | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EachGate:
    """Those that `check` refuses are answered with its error, the others go to the handler."""

    check: Check
    response: type[Message]
    asked: str
    answered: str
    echoed: Mapping[str, str]
    """By the name of a field of an answer: that of the element's field with the same value, or
    nothing where the elements are plain names."""

    def __call__(self, visitor: Visitor, request: Any) -> Looking:
        allowed, refused = [], []
        for each in getattr(request, self.asked):
            yield 1
            error = self.check(visitor, each)
            if error is None:
                allowed.append(each)
            else:
                refused.append(self._refuse(each, error))
        if not refused:
            return Passed(request)
        if not allowed:
            return Passed(None, lambda _: filled(self.response, **{self.answered: refused}))
        rest = replace(request, **{self.asked: allowed})

        def finish(response: Any) -> Any:
            return replace(
                response, **{self.answered: [*getattr(response, self.answered), *refused]}
            )

        return Passed(rest, finish)

    def _refuse(self, each: Any, error: RequestError) -> Any:
        struct = element_of(self.response, self.answered)
        echoed = {field: getattr(each, of) if of else each for field, of in self.echoed.items()}
        return filled(struct, **echoed, **said_of(struct, error))


def each_named(
    operation: Operation,
    resource_type: ResourceType,
    *,
    response: type[Message],
    asked: str,
    answered: str,
    name: str,
    of: str = "",
) -> EachGate:
    """Of resources of one type. `name` is the answer's field for what one is called, `of` the
    element's; nothing where the elements are plain names."""

    def check(visitor: Visitor, each: Any) -> RequestError | None:
        return visitor.refused(operation, resource_type, getattr(each, of) if of else each)

    return EachGate(
        check=check, response=response, asked=asked, answered=answered, echoed={name: of}
    )
