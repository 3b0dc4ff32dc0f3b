"""Connections kept open between uses, for processes that read one range after another."""

import os
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from tidemark.client.addresses import Address
from tidemark.client.blocking.connection import BlockingConnection, open_connection
from tidemark.client.settings import ClientSettings
from tidemark.protocol.values import dataclass

IDLE_MAX: Final = 16
IDLE_SECONDS_MAX: Final = 120.0
"""Shorter than brokers wait before they close an idle connection."""


@dataclass(slots=True)
class _Idle:
    connection: BlockingConnection
    settings: ClientSettings
    since: float
    process: int = field(default_factory=os.getpid)


class KeptConnections:
    """Idle connections, the least recently used first. Not for several threads at a time."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle: list[_Idle] = []

    @property
    def idle(self) -> tuple[BlockingConnection, ...]:
        """Those that nobody uses."""
        return tuple(idle.connection for idle in self._idle)

    def open(self, address: Address, settings: ClientSettings) -> BlockingConnection:
        """One to this address that is idle, or a new one. Raises `OSError`."""
        self._drop_old()
        for idle in reversed(self._idle):
            if idle.connection.address == address and idle.settings == settings:
                self._idle.remove(idle)
                if idle.connection.is_quiet():
                    return idle.connection
                idle.connection.close()
        return open_connection(address, settings)

    def give_back(self, connection: BlockingConnection, settings: ClientSettings) -> None:
        """Keep it for the next; close it if an answer to it is still to come."""
        if not connection.is_quiet():
            connection.close()
            return
        self._idle.append(_Idle(connection, settings, self._clock()))
        self._drop_old()

    def close(self) -> None:
        """Close all that are idle."""
        for idle in self._idle:
            idle.connection.close()
        self._idle.clear()

    def _drop_old(self) -> None:
        oldest = self._clock() - IDLE_SECONDS_MAX
        # A process that was forked must not use its parent's sockets.
        young = [idle for idle in self._idle if idle.since > oldest and idle.process == os.getpid()]
        young = young[-IDLE_MAX:]
        for idle in self._idle:
            if idle not in young:
                idle.connection.close()
        self._idle = young
