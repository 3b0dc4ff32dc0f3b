"""The response that says nothing but an error, for any API that has one error for the whole.

A handler that can say more (an error per partition, say) does so itself; this is for what escapes
it.
"""

from dataclasses import MISSING
from typing import Any, Final, TypeVar

from tidemark.protocol.errors import RequestError
from tidemark.protocol.schema.declaration import Message, Struct, WireField
from tidemark.protocol.schema.wire_types import BOOL, BYTES, FLOAT64, RECORDS, STRING, Array, Scalar

S = TypeVar("S", bound=Struct)

_EMPTY: Final[dict[object, object]] = {
    STRING: "",
    BYTES: b"",
    RECORDS: b"",
    BOOL: False,
    FLOAT64: 0.0,
}


def error_response(response: type[Message], error: RequestError) -> Message | None:
    """`response` with nothing in it but `error`; `None` if it has no place for one."""
    if not has_field(response, "error_code"):
        return None
    return filled(response, **said_of(response, error))


def said_of(kind: type[Struct], error: RequestError) -> dict[str, Any]:
    """What a struct that has an error code says of an error. Any: a field may hold anything."""
    values: dict[str, Any] = {"error_code": error.code}
    if has_field(kind, "error_message"):
        values["error_message"] = error.message
    return values


def has_field(kind: type[Struct], name: str) -> bool:
    return any(field.name == name for field in kind.wire_fields)


def filled(kind: type[S], **values: object) -> S:
    """One with these values; what has neither one nor a default is empty."""
    for field in kind.wire_fields:
        if field.default is MISSING and field.name not in values:
            values[field.name] = _empty(field)
    return kind(**values)


def _empty(field: WireField) -> object:
    if field.null_since == 0:
        return None
    if isinstance(field.type, Array):
        return ()
    if isinstance(field.type, Scalar):
        # An id, an epoch or a generation that is not there is -1 everywhere in the protocol.
        return _EMPTY.get(field.type, -1)
    return _EMPTY[field.type]
