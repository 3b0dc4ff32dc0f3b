"""A broker of a cluster under test: its ports and its data outlive its runs."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import RunningBroker, open_broker
from tidemark.protocol.errors import StorageError
from tidemark.testing.slow_files import SlowFiles

ANY_PORT = "127.0.0.1:0"


class HostedBroker:
    """One broker, running or not. It keeps the ports that it got at its first start."""

    def __init__(self, node: int, data_dir: Path, settings: Mapping[str, str]) -> None:
        self.node = node
        self.data_dir = data_dir
        self.files = SlowFiles()
        self.running: RunningBroker | None = None
        self._delay = ExitStack()
        self._is_killed = False
        self._settings = {**settings, "data.dir": str(data_dir)}
        self.kafka = self._settings.pop("listeners", ANY_PORT)
        self.http = self._settings.pop("http.listen", ANY_PORT)
        self.peers = self._settings.pop("peer.listen", ANY_PORT)
        self._stop = trio.Event()
        self._stopped = trio.Event()

    async def run(
        self, join: str | None, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `stop`. `join` is a broker of the cluster that a new one is to belong to."""
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

    async def _serve(self, join: str | None, task_status: trio.TaskStatus[None]) -> None:
        settings = load_settings(options=self._options(join)).settings
        async with open_broker(settings, files=self.files) as broker:
            self.running = broker
            self.kafka, self.peers = str(broker.kafka_address), str(broker.peer_address)
            if broker.http_address is not None:
                self.http = str(broker.http_address)
            task_status.started()
            await self._stop.wait()

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
            self.delay_disk(0)
            broker.connections.turn.run(partial(_die, broker))
            broker.connections.turn.release()
            await self._stopped.wait()

    def delay_disk(self, seconds: float) -> None:
        """Have each sync take so much longer. It is its disk's thread that waits, and never the
        loop, though a sync may go there on a quick disk: here the loop is every broker's."""
        self._delay.close()
        if seconds and self.running is not None:
            self._delay.enter_context(self.running.node.disk.others())
        self.files.delay(seconds)

    def pause(self) -> None:
        """As SIGSTOP does, but for what a thread of it is doing, and for its `/metrics`."""
        assert self.running is not None, "it does not run"
        self.running.connections.turn.hold()

    def resume(self) -> None:
        """Nothing if it is not paused."""
        if self.running is not None:
            self.running.connections.turn.release()

    def _options(self, join: str | None) -> dict[str, str]:
        options = {
            **self._settings,
            "listeners": self.kafka,
            "http.listen": self.http,
            "peer.listen": self.peers,
        }
        return options if join is None else {**options, "join": join}


def _die(broker: RunningBroker) -> None:
    broker.peers.close()
    broker.connections.close()
    broker.node.disk.fail(OSError(errno.EIO, "the test has killed the broker"))
