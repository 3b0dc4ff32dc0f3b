"""Which topics a client keeps the metadata of: those in use, and others for a while.

Pure: time is an argument.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class UsedTopics:
    """See the module."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._asked_at: dict[str, float] = {}
        self._users: list[Callable[[], Iterable[str]]] = []

    def asked(self, topics: Iterable[str], now: float) -> None:
        """Somebody wants to know of these."""
        self._asked_at.update(dict.fromkeys(topics, now))

    def forget(self, topic: str) -> None:
        """Nobody does, but for its users."""
        self._asked_at.pop(topic, None)

    @contextmanager
    def using(self, topics: Callable[[], Iterable[str]]) -> Iterator[None]:
        """Keep whatever `topics` gives, for as long as the block."""
        self._users.append(topics)
        try:
            yield
        finally:
            self._users.remove(topics)

    def names(self, now: float) -> list[str]:
        """What is to be kept, and nothing else is remembered."""
        self._asked_at = {
            topic: at for topic, at in self._asked_at.items() if now - at <= self._idle_seconds
        }
        used = (topic for topics in self._users for topic in topics())
        return list(dict.fromkeys([*self._asked_at, *used]))
