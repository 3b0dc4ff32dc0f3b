"""A broker in this process that is started, stopped, killed and started again."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from functools import partial

import trio

from tidemark.broker.server import RunningBroker
from tidemark.protocol.errors import StorageError


class BrokerRuns(ABC):
    """Its runs, one after the other. With what it is run is for those who build on this."""

    def __init__(self) -> None:
        self.running: RunningBroker | None = None
        self._is_killed = False
        self._stop = trio.Event()
        self._stopped = trio.Event()

    async def run(
        self, join: str | None, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until it is stopped or killed. `join` is a broker of the cluster that a new one is
        to belong to."""
        assert self.running is None, "it runs already"
        self._stop, self._stopped = trio.Event(), trio.Event()
        self._is_killed = False
        try:
            await self._serve(join, task_status)
        except* StorageError:
            if not self._is_killed:
                raise
        finally:
            self.running = None
            self._stopped.set()

    @abstractmethod
    async def _serve(self, join: str | None, task_status: trio.TaskStatus[None]) -> None:
        """Set `running`, say so, and serve until `_stop`."""

    async def stop(self) -> None:
        """As SIGTERM does, and SIGCONT before it; nothing if it does not run."""
        if self.running is not None:
            self.running.connections.turn.release()
            self._stop.set()
            await self._stopped.wait()

    async def kill(self) -> None:
        """All but at once; nothing if it does not run. What is on the disk stays as it is.

        Its connections are closed, what waits to be sent or written is forgotten, and nothing more
        is written or recorded: it ends as if its disk had failed, which vouches for nothing. A
        write that its disk thread is in the middle of is finished.
        """
        broker = self.running
        if broker is not None:
            self._is_killed = True
            broker.connections.turn.run(partial(_die, broker))
            broker.connections.turn.release()
            await self._stopped.wait()

    def pause(self) -> None:
        """As SIGSTOP does, but for what a thread of it is doing, and for its `/metrics`. Nothing if
        it does not run."""
        if self.running is not None:
            self.running.connections.turn.hold()

    def resume(self) -> None:
        """Nothing if it is not paused."""
        if self.running is not None:
            self.running.connections.turn.release()


def _die(broker: RunningBroker) -> None:
    broker.peers.close()
    broker.connections.close()
    broker.node.disk.fail(OSError(errno.EIO, "the test has killed the broker"))
