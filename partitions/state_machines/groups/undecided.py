"""What transactions say of keys, kept aside until it is decided whether they have said it.

Of one key the last record in the log counts, whoever wrote it, and never by when a transaction was
decided: compaction keeps the last record too, so that a log tells the same before it and after.
"""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from tidemark.protocol.types import ProducerId

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Undecided(Generic[K, V]):
    """Values by key, and by the producer whose transaction they are in. Fed in the log's order."""

    def __init__(self) -> None:
        # With the place of each in the log's order. Invariant: each value's key is among its
        # producer's keys, and no inner dict is empty.
        self._values: dict[K, dict[ProducerId, tuple[int, V]]] = {}
        self._keys: dict[ProducerId, dict[K, None]] = {}
        self._next = 0

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def add(self, producer_id: ProducerId, key: K, value: V) -> None:
        """The log has a record of the producer's open transaction."""
        self._values.setdefault(key, {})[producer_id] = self._next, value
        self._keys.setdefault(producer_id, {})[key] = None
        self._next += 1

    def supersede(self, key: K) -> None:
        """The log has a record of that key that is in no transaction: what came before is over."""
        self._supersede(key, self._next)

    def end(self, producer_id: ProducerId, *, is_commit: bool) -> list[tuple[K, V]]:
        """The producer's transaction is decided: what it says, if it is to count, in order."""
        ended = []
        for key in self._keys.pop(producer_id, ()):
            ended.append((*self._values[key].pop(producer_id), key))
            if not self._values[key]:
                del self._values[key]
        if not is_commit:
            return []
        ended.sort(key=lambda each: each[0])
        for place, _, key in ended:
            self._supersede(key, place)
        return [(key, value) for _, value, key in ended]

    def in_order(self) -> list[tuple[ProducerId, K, V]]:
        """All of it, so that another one can be fed with the same."""
        found = [
            (place, producer_id, key, value)
            for key, values in self._values.items()
            for producer_id, (place, value) in values.items()
        ]
        found.sort(key=lambda each: each[0])
        return [(producer_id, key, value) for _, producer_id, key, value in found]

    def _supersede(self, key: K, place: int) -> None:
        """Drop what is said of the key before that place."""
        values = self._values.get(key, {})
        for producer_id in [each for each, (at, _) in values.items() if at < place]:
            del values[producer_id]
            keys = self._keys[producer_id]
            del keys[key]
            if not keys:
                del self._keys[producer_id]
        if key in self._values and not values:
            del self._values[key]
