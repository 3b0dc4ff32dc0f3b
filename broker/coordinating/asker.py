"""Who has asked a coordinator something, and waits for the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from tidemark.broker.network.requests import Pending

A = TypeVar("A")
R = TypeVar("R")


class Asker(Generic[A, R]):
    """Turns the machine's answer into the response, and completes the request."""

    __slots__ = ("_kind", "_respond", "pending")

    def __init__(self, kind: type[A], respond: Callable[[A], R]) -> None:
        self.pending: Pending[R] = Pending()
        self._kind = kind
        self._respond = respond

    def take(self, answer: object) -> None:
        """Whatever goes wrong in it is this one's: others are answered after it, and what the
        machine has decided is still to be written."""
        assert isinstance(answer, self._kind)
        assert not self.pending.is_complete, "a request is answered once"
        self.pending.try_complete(partial(self._respond, answer))
