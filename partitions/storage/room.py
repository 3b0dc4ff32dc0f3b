"""How much room the disk has, and what may still be written to it.

The unit is what the reserve holds when it is whole, a 64th of the disk from 1 to 16 MiB. What is
*spare* is what is free and what the reserve holds.

| spare, in units | what is refused |
|-----------------|-----------------|
| less than 5     | clients' records, until there are 6 |
| less than ½     | what groups commit, and transactions, too, until there is 1 |

The reserve is given up by quarters, each when a write of the broker's own has found no room: what
is given up sooner, somebody else may take who is filling the disk. It is taken again when 5 units
are free. So whatever has filled the disk, there is room for what is to free it: the deletion of a
topic, a shorter retention. The metadata are never refused. A stop and a start write much at once:
each is given half of a unit.

A broker fills its own disk by a gigabyte a second. So what it appends is counted, and the disk is
looked at again before that can have used what was spare: by time alone, it would be seen too late.
"""

import errno
from collections.abc import Callable
from math import inf
from typing import Final

from tidemark.partitions.storage.files import Files, Space
from tidemark.partitions.storage.reserve import Reserve
from tidemark.protocol.values import dataclass

_UNIT_BYTES_MIN: Final = 1 << 20
_UNIT_BYTES_MAX: Final = 16 << 20
"""As large as a file of the journal: it may need a new one, and `state.db` some for its own."""
_UNITS_OF_DISK: Final = 64
_LOW_UNITS: Final = 5
_TIMES_WRITTEN: Final = 2
"""What is appended to a log may be in the journal, too."""


class OutOfRoom(OSError):
    """An append was refused, because the disk is nearly full. Nothing was written."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.ENOSPC, what)

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(slots=True, eq=False)
class Room:
    """Whether the logs that share it take appends."""

    is_out: bool = False
    why: str = ""
    left_bytes: float = inf
    """So much may be appended before the disk is to be looked at again."""
    look: Callable[[], None] = lambda: None
    """Does that. Must not raise."""

    def took(self, size_bytes: int) -> None:
        """Of an append."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            self.look()

    def refusal(self) -> OutOfRoom:
        return OutOfRoom(self.why)


ALWAYS: Final = Room()
"""Of logs that nobody keeps from growing: the cluster's metadata."""


class DirectoryRoom:
    """What may be written to the disk of one data directory."""

    def __init__(self, files: Files, directory: str) -> None:
        """Raises `OSError` if the directory cannot be looked at."""
        self.records = Room()
        """Of clients' records."""
        self.coordinators = Room()
        """Of what the broker writes to the logs of its own topics for clients."""
        self.space = Space(0, 0)
        """When it was last looked at."""
        self._files = files
        self._directory = directory
        self._reserve = Reserve(files, directory)
        self.look()

    @property
    def unit_bytes(self) -> int:
        return max(_UNIT_BYTES_MIN, min(_UNIT_BYTES_MAX, self.space.total_bytes // _UNITS_OF_DISK))

    @property
    def low_bytes(self) -> int:
        """With less than this spare, clients' records are refused."""
        return _LOW_UNITS * self.unit_bytes

    @property
    def spare_bytes(self) -> int:
        return self.space.free_bytes + self._reserve.held_bytes

    def look(self) -> None:
        """See how much is free, and decide. Raises `OSError` if the disk does not say."""
        self.space = self._files.space(self._directory)
        unit, spare = self.unit_bytes, self.spare_bytes
        low, again = _LOW_UNITS * unit, (_LOW_UNITS + 1) * unit
        why = (
            f"the disk of {self._directory} is full: {self.space.free_bytes} bytes are free, and "
            f"records are taken again once there are {again - self._reserve.held_bytes}"
        )
        _decide(self.records, spare, why, below=low, again=again)
        _decide(self.coordinators, spare, why, below=unit // 2, again=unit)

    @property
    def is_nothing_free(self) -> bool:
        """Whether so little is, beside the reserve, that a write of some pages may find no room."""
        return self.space.free_bytes < self.unit_bytes // 4

    @property
    def is_reserve_due(self) -> bool:
        """Whether the reserve is to be taken, and can be."""
        unit = self.unit_bytes
        return self._reserve.held_bytes < unit and self.space.free_bytes >= _LOW_UNITS * unit

    def take_reserve(self) -> None:
        """Blocking. Raises `OSError`."""
        self._reserve.take(self.unit_bytes)

    def make_room(self) -> bool:
        """A write has found no room: whether there is some more now. Any thread may say so. Raises
        `OSError`."""
        return self._reserve.give_up(self.unit_bytes // 4)

    def make_much_room(self) -> None:
        """The broker starts or stops: see that it has half a unit, if there is a reserve. Raises
        `OSError`."""
        self.look()
        if self.space.free_bytes < self.unit_bytes // 2:
            self._reserve.give_up(self.unit_bytes // 2)


def _decide(room: Room, spare: int, why: str, *, below: int, again: int) -> None:
    room.why = why
    room.left_bytes = max(0, spare - below) // _TIMES_WRITTEN
    if spare < below:
        room.is_out = True
    elif spare >= again:
        room.is_out = False
