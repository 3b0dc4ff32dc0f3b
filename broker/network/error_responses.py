"""The response that says nothing but an error, for any API that has one error for the whole.

A handler that can say more (an error per partition, say) does so itself; this is for what escapes
it.
"""

from dataclasses import MISSING, fields
from typing import Final

from tidemark.protocol.errors import RequestError
from tidemark.protocol.schema.declaration import Message, WireField
from tidemark.protocol.schema.wire_types import BOOL, BYTES, FLOAT64, RECORDS, STRING, Array, Scalar

_EMPTY: Final[dict[object, object]] = {
    STRING: "",
    BYTES: b"",
    RECORDS: b"",
    BOOL: False,
    FLOAT64: 0.0,
}


def error_response(response: type[Message], error: RequestError) -> Message | None:
    """`response` with nothing in it but `error`; `None` if it has no place for one."""
    names = {field.name for field in fields(response)}  # type: ignore[arg-type]  # messages are dataclasses
    if "error_code" not in names:
        return None
    values = {
        field.name: _empty(field) for field in response.wire_fields if field.default is MISSING
    }
    values["error_code"] = error.code
    if "error_message" in names:
        values["error_message"] = error.message
    return response(**values)


def _empty(field: WireField) -> object:
    if field.null_since == 0:
        return None
    if isinstance(field.type, Array):
        return ()
    if isinstance(field.type, Scalar):
        # An id, an epoch or a generation that is not there is -1 everywhere in the protocol.
        return _EMPTY.get(field.type, -1)
    return _EMPTY[field.type]
