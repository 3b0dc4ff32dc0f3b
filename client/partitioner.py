"""Which partition a record goes to: by its key as Java's producer does, or by sticking to one.

Placement by key must equal Java's, bit for bit: another placement would split a key's records
over two partitions as soon as two clients write the same topic, and with it their order.
"""

from collections.abc import Callable, Sequence
from random import Random

Partitioner = Callable[[bytes, int], int]
"""From a key and the number of partitions to a partition."""

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of Kafka's clients, as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if whole != length:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def murmur2_partition(key: bytes, partitions: int) -> int:
    """Java's placement: the hash without its sign bit, modulo the number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitions:
    """For records without a key: one partition per topic until its batch is full (KIP-480).

    Records then share batches, where round robin would spread them over many small ones.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._current: dict[str, int] = {}

    def move_on(self, topic: str, candidates: Sequence[int]) -> int:
        """The current batch is full or on its way: go to another of `candidates`, if there is."""
        current = self._current.get(topic)
        others = [candidate for candidate in candidates if candidate != current]
        chosen = self._random.choice(others or candidates)
        self._current[topic] = chosen
        return chosen
