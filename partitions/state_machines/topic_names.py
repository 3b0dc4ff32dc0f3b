"""What a topic may be called, and how many partitions and replicas it may ask for."""

import re
from typing import Final

from tidemark.partitions.state_machines.placement import replicas_sentence
from tidemark.protocol.errors import ErrorCode, RequestError

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""The broker's own topics: clients see them, and may not produce to or delete them."""

NAME_LENGTH_MAX: Final = 249
"""A file name's 255 less the dash and the partition number that a directory adds."""

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_DEFAULT: Final = -1


def check_topic_name(name: str) -> None:
    """Raises `RequestError` INVALID_TOPIC_EXCEPTION for a name that no topic may have (trap M3)."""
    if not name:
        raise _invalid("a topic needs a name")
    if name in {".", ".."}:
        raise _invalid(f'a topic cannot be called "{name}"')
    if len(name) > NAME_LENGTH_MAX:
        raise _invalid(f"a name of {len(name)} characters; {NAME_LENGTH_MAX} are allowed")
    if not _NAME.fullmatch(name):
        raise _invalid(f'"{name}" has other characters than a-z, A-Z, 0-9, ".", "_" and "-"')


def collision_key(name: str) -> str:
    """Equal for names that metrics cannot tell apart: there "." becomes "_"."""
    return name.replace(".", "_")


def resolve_partitions(requested: int, *, default: int) -> int:
    """The number of partitions; -1 asks for the default (trap M9).

    Raises `RequestError` INVALID_PARTITIONS for a number that is not positive.
    """
    if requested == _DEFAULT:
        return default
    if requested < 1:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"{requested} partitions: ask for at least one, or for -1 to have the default",
        )
    return requested


def resolve_replication_factor(requested: int, *, default: int, brokers: int) -> int:
    """The number of replicas; -1 asks for the default, at most one a broker.

    Raises `RequestError` INVALID_REPLICATION_FACTOR for more replicas than brokers, or for none.
    """
    if requested == _DEFAULT:
        return min(default, brokers)
    if not 1 <= requested <= brokers:
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            replicas_sentence(requested, brokers),
        )
    return requested


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, sentence)
