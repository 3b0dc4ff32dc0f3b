"""Looks how full the disk is, again and again: the more often, the less is free, and whenever the
broker itself may have filled it.

What that means for whoever writes is in `partitions/storage/room.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import trio

from tidemark.broker.threads import in_thread
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_TOPIC
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.partitions.storage.room import ALWAYS, DirectoryRoom, Room
from tidemark.protocol.errors import StorageError

_FIRST_SECONDS: Final = 1.0
"""After a start, which is not kept up by taking the reserve."""
_FULL_SECONDS: Final = 0.25
"""Between two looks while records are refused: some microseconds each."""
_SECONDS_MIN: Final = 0.1
_SECONDS_MAX: Final = 10.0
_FILLED_PER_SECOND: Final = 512 << 20
"""Bytes; what somebody else fills faster than that is seen by a failed write."""

logger = logging.getLogger(__name__)


class RoomWatch:
    """Of one data directory. Used on the loop's thread, but for `make_room`."""

    def __init__(self, room: DirectoryRoom) -> None:
        self.room = room
        self._is_due = trio.Event()
        self._is_out = trio.Event()
        room.records.look = room.coordinators.look = self.look
        if self.is_out:
            self._say_it_is_out()

    def of(self, topic: str) -> Room:
        """Whether logs of a topic take appends."""
        if topic == CLUSTER_TOPIC:
            return ALWAYS
        return self.room.coordinators if topic in INTERNAL_TOPICS else self.room.records

    @property
    def is_out(self) -> bool:
        """Whether clients' records are refused."""
        return self.room.records.is_out

    def look(self) -> None:
        """Look now: a write has found no room, or somebody asks."""
        was_out = self.is_out
        try:
            self.room.look()
        except OSError as error:
            logger.warning("how much room there is on the disk cannot be seen: %s", error)
            return
        if self.is_out and not was_out:
            self._say_it_is_out()
        elif was_out and not self.is_out:
            self._is_out = trio.Event()
            free_bytes = self.room.space.free_bytes
            logger.warning("records are taken again: %d bytes are free on the disk", free_bytes)

    def _say_it_is_out(self) -> None:
        self._is_out.set()
        self._is_due.set()  # from now on it is looked more often
        logger.error(
            "%s. Until then produce requests are refused. Delete what is not needed with `tidemark "
            "topic delete`, or shorten its retention",
            self.room.records.why,
        )

    async def wait_out(self) -> None:
        """Until clients' records are refused; at once if they are."""
        await self._is_out.wait()

    def make_room(self) -> bool:
        """From any thread: a write of the broker's own has found no room. Whether there is some
        more now."""
        try:
            return self.room.make_room()
        except OSError:
            return False

    def make_room_if_full(self) -> bool:
        """Something was not done, perhaps for want of room; whether to try it again."""
        self.look()
        return self.room.is_nothing_free and self.make_room()

    def make_much_room(self) -> None:
        """The broker is about to stop, and to write all that it has not yet written. Blocking."""
        with suppress(OSError):
            self.room.make_much_room()

    async def run(self) -> None:
        """Look, and keep the reserve, until the end."""
        await trio.sleep(_FIRST_SECONDS)
        while True:
            self._is_due = trio.Event()
            self.look()
            if self.room.is_reserve_due:
                await self._take_reserve()
            with trio.move_on_after(self._pause_seconds()):
                await self._is_due.wait()

    async def _take_reserve(self) -> None:
        try:
            await in_thread(self.room.take_reserve)
        except OSError as error:
            logger.warning("the reserve of the disk cannot be taken: %s", error)
        self.look()

    def _pause_seconds(self) -> float:
        room = self.room
        if room.records.is_out:
            return _FULL_SECONDS
        seconds = (room.spare_bytes - room.low_bytes) / _FILLED_PER_SECOND
        return min(max(seconds, _SECONDS_MIN), _SECONDS_MAX)


@contextmanager
def room_to_start(room: DirectoryRoom, path: str) -> Iterator[None]:
    """What is opened in this block may use the reserve. Where there is no room without and with
    it, the `StorageError` says what to do, as it does where the system does not let it."""
    try:
        room.make_much_room()
        yield
    except (OSError, StorageError) as error:
        room.look()
        if room.spare_bytes >= room.unit_bytes // 2:
            if isinstance(error, PermissionError):
                raise StorageError(
                    f"{error.filename or path}: {error.strerror}. Let the broker's user read and "
                    "write all that is in its data directory"
                ) from error
            raise
        cause = str(error).partition(". ")[0]
        raise StorageError(
            f"the disk of {path} is full: {room.space.free_bytes} bytes are free, and a start "
            f"needs some {room.unit_bytes}. Remove something that is not the broker's, or give the "
            "disk more room; once it runs, delete topics that are not needed, or shorten their "
            f"retention ({cause})"
        ) from error
