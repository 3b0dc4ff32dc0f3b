"""Users of a broker that has ACLs, each with one library's own clients.

All libraries are used in the same few ways, so that one story is told of all of them. What a
library raises, or prints, about being refused becomes `Refused`, by the number that its own error
has: a library that says something else, or nothing, fails its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import pytest

from tidemark.protocol.errors import ErrorCode

PASSWORD: Final = "secret"
SECONDS_MAX: Final = 15
"""How long anything may take that is expected to happen."""


class Login(NamedTuple):
    """Where, and as whom."""

    bootstrap: str
    user: str


class Refused(Exception):
    """The broker does not allow it."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


REFUSALS: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

Send: TypeAlias = Callable[[bytes], None]
"""Returns when the value is acknowledged."""
Receive: TypeAlias = Callable[[], bytes]
"""The next value, which is committed when it returns."""


class Writing(Protocol):
    """A producer that stays connected. Either to open it or to send may be refused."""

    def __call__(
        self, login: Login, topic: str, *, is_idempotent: bool = ...
    ) -> AbstractContextManager[Send]: ...


Reading: TypeAlias = Callable[[Login, str, str], AbstractContextManager[Receive]]
"""Of a topic, in a group, from its beginning."""
Transacting: TypeAlias = Callable[[Login, str, str], AbstractContextManager[Send]]
"""To a topic, with a transactional id, each value in a transaction of its own. One that was refused
is not used again: librdkafka would abort what was never begun, which no broker takes, and aiokafka
goes on with a sequence that leaves out what was not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """How its clients are used."""

    writing: Writing
    reading: Reading
    transacting: Transacting | None = None


@contextmanager
def is_refused(*codes: ErrorCode) -> Iterator[None]:
    """What the block does is refused with one of these."""
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.code in codes
