"""Waking the loop from another thread, where it sleeps.

trio's own way writes to a socket each time, and has a task read it until nothing is left before
whoever was meant has his turn. Here a descriptor in the reactor's epoll set is written to, and
nobody reads it: that there was an event is all there is to it. And a loop that is awake need not be
woken, for it looks at what it was told before it falls asleep.
"""

import os
import select


class Bell:
    """Of one epoll set, for as long as the process has it."""

    __slots__ = ("_descriptor", "is_asleep")

    def __init__(self, epoll: select.epoll) -> None:
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # At the edge: each ring is an event, whether or not anybody has read the one before.
        epoll.register(self._descriptor, select.EPOLLIN | select.EPOLLET)
        self.is_asleep = False
        """Whether the loop sleeps, or is about to. Set before it looks for the last time, and so
        before whoever says something later looks here."""

    def ring(self) -> None:
        """Wake the loop if it sleeps. From any thread, once there is something to be heard."""
        if self.is_asleep:
            os.eventfd_write(self._descriptor, 1)

    def close(self) -> None:
        """Nobody rings any more."""
        os.close(self._descriptor)
