"""A broker at the end of two cables, which is killed, stopped and started again on its data."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from functools import partial

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import RunningBroker, open_broker
from tidemark.protocol.errors import StorageError
from tidemark.testing.shell.cables import Cable
from tidemark.testing.shell.disks import Disk
from tidemark.testing.shell.seams import BOOT


class ShellBroker:
    """One broker, running or not. Its cables stay."""

    def __init__(
        self, node: int, disk: Disk, settings: Mapping[str, str], clients: Cable, peers: Cable
    ) -> None:
        self.node = node
        self.clients = clients
        self.peers = peers
        self.running: RunningBroker | None = None
        self._disk = disk
        self._settings = settings
        self._is_killed = False
        self._boots = 0
        self._stop = trio.Event()
        self._stopped = trio.Event()

    async def run(
        self, join: str | None, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until it is stopped or killed."""
        self._stop, self._stopped = trio.Event(), trio.Event()
        self._is_killed = False
        try:
            clients, peers = _free_address(), _free_address()
            options = {
                **self._settings,
                "data.dir": str(self._disk.data),
                "node.id": str(self.node),
                "listeners": clients,
                "advertised.listeners": self.clients.address,
                "peer.listen": peers,
                "peer.advertise": self.peers.address,
                "http.listen": "",
            }
            if join is not None:
                options["join"] = join
            BOOT.set(str(self._boots))
            loaded = load_settings(options=options).settings
            async with open_broker(loaded, files=self._disk) as broker:
                self.running = broker
                self.clients.upstream, self.peers.upstream = clients, peers
                task_status.started()
                await self._stop.wait()
        except* StorageError:
            if not self._is_killed:
                raise
        finally:
            self.running = self.clients.upstream = self.peers.upstream = None
            self._stopped.set()

    async def stop(self) -> None:
        if self.running is not None:
            self.running.connections.turn.release()
            self._stop.set()
            await self._stopped.wait()

    async def kill(self) -> None:
        """What waits to be sent or written is forgotten, as with `kill -9`."""
        broker = self.running
        if broker is not None:
            self._is_killed = True
            broker.connections.turn.run(partial(_die, broker))
            broker.connections.turn.release()
            await self._stopped.wait()

    async def lose_power(self) -> None:
        """As `kill`, and of what was not synced anything may be there, or not."""
        if self.running is not None:
            self._disk.lose_power()
            await self.kill()
            self._disk.restore()
            self._boots += 1

    def pause(self) -> None:
        if self.running is not None:
            self.running.connections.turn.hold()

    def resume(self) -> None:
        if self.running is not None:
            self.running.connections.turn.release()


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return f"127.0.0.1:{bound.getsockname()[1]}"


def _die(broker: RunningBroker) -> None:
    broker.peers.close()
    broker.connections.close()
    broker.node.disk.fail(OSError(errno.EIO, "killed"))
