"""Error codes of answers: to the enumeration, and to an exception."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from tidemark.protocol.errors import ErrorCode, RequestError

T = TypeVar("T")

_TOLD_MAX: Final = 10
"""So many refusals are told with the first: of a thousand partitions all may be."""
_CODES = frozenset(map(int, ErrorCode))
_HINTS: Final[Mapping[int, str]] = {
    ErrorCode.INVALID_SESSION_TIMEOUT: "its brokers allow no session_timeout_seconds like this"
    " (group.min.session.timeout.ms, group.max.session.timeout.ms)",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "its members have no assignor in common with this one"
    " (assignors)",
    ErrorCode.NON_EMPTY_GROUP: "it has members: stop them first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read it: stop them first",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "it has as many members as its brokers allow",
    ErrorCode.FENCED_INSTANCE_ID: "another member has this instance_id now",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "its brokers allow no transaction_timeout_seconds as"
    " long (transaction.max.timeout.ms)",
    ErrorCode.PRODUCER_FENCED: "another producer has it now, or its transaction took too long",
    ErrorCode.INVALID_TXN_STATE: "it has no transaction to be ended so: as when it took too long",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a name has 1 to 249 letters, digits, dots, hyphens and"
    " underscores, and is not . or ..",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "no ACL allows this user to do that with the topic"
    " (`tidemark acl list`)",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "no ACL allows this user to do that with the group"
    " (`tidemark acl list`)",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "no ACL allows this user to do that with the"
    " transactional id (`tidemark acl list`)",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "no ACL allows this user to do that, neither with the"
    " cluster nor, for an idempotent producer, with any topic (`tidemark acl list`)",
}
"""What to say where the broker does not."""
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


def check_each(results: Iterable[tuple[int, object, str | None]]) -> None:
    """As `check`, of several: the first refusal is raised, and the others are its notes."""
    raise_first([failed(*result) for result in results if result[0]])


def raise_first(refusals: Sequence[RequestError]) -> None:
    """Raise the first of these, if any, with the others as its notes."""
    if not refusals:
        return
    first, *others = refusals
    for each in others[:_TOLD_MAX]:
        first.add_note(str(each))
    if len(others) > _TOLD_MAX:
        first.add_note(f"and {len(others) - _TOLD_MAX} more")
    raise first


def only(answers: Sequence[T], what: object) -> T:
    """The one answer about `what`, of which alone was asked. Raises `RequestError`."""
    if len(answers) != 1:
        raise left_out(what)
    return answers[0]


def left_out(what: object) -> RequestError:
    """The error for what was asked about, where the answer says nothing of it."""
    return RequestError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{what}: left out of the answer")


def failed(number: int, what: object, message: str | None = None) -> RequestError:
    """The error of this number, which is not 0, as `check` raises it."""
    message = message or _HINTS.get(number)
    if not message and number in _NOT_THERE:
        words = f"there is no {what}"
    elif message and str(what) in message:
        words = message  # it names what it is about
    else:
        words = f"{what}: {message}" if message else str(what)
    if number not in _CODES:
        words = f"{words} (code {number})"
    return RequestError(error_code(number), words)
