"""The last offset of each key, in bounded memory.

A dict of keys and offsets. A long key goes in as its digest, so that an entry has a size that can
be said beforehand; digests have a length that no key in here has, so the two are never confused.
Whoever fills the map stops when it is full: what it knows is true up to there, and the rest is
another run's.
"""

from hashlib import blake2b
from typing import Final

from tidemark.protocol.types import Offset

KEY_BYTES_MAX: Final = 31
_DIGEST_BYTES: Final = 32
ENTRY_BYTES: Final = 256
"""What an entry takes at most: the key, an integer, and its share of a dict that has just grown."""


class KeyOffsets:
    """A map with a bound. Loops over records use its dict: a call for each would take as long."""

    __slots__ = ("_entries_max", "offsets")

    def __init__(self, bytes_max: int) -> None:
        self.offsets: dict[bytes, Offset] = {}
        """By `short` keys."""
        self._entries_max = max(1, bytes_max // ENTRY_BYTES)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_full(self) -> bool:
        return len(self.offsets) >= self._entries_max


def short(key: bytes) -> bytes:
    """The key, or what stands for it in the map."""
    if len(key) <= KEY_BYTES_MAX:
        return key
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
