"""Error codes of answers: to the enumeration, and to an exception."""

from tidemark.protocol.errors import ErrorCode, RequestError

_CODES = frozenset(map(int, ErrorCode))
_NOT_THERE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


def error_code(number: int) -> ErrorCode:
    """The code of this number; one from the future is UNKNOWN_SERVER_ERROR."""
    return ErrorCode(number)


def check(number: int, what: object, message: str | None = None) -> None:
    """Raise `RequestError` unless `number` is 0, naming `what`, with the broker's words if any."""
    if number:
        raise failed(number, what, message)


def failed(number: int, what: object, message: str | None = None) -> RequestError:
    """The error of this number, which is not 0, as `check` raises it."""
    if not message and number in _NOT_THERE:
        words = f"there is no {what}"
    else:
        words = f"{what}: {message}" if message else str(what)
    if number not in _CODES:
        words = f"{words} (code {number})"
    return RequestError(error_code(number), words)
