"""A broker at the end of two cables, which is killed, stopped and started again on its data."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import open_broker
from tidemark.testing.broker_runs import BrokerRuns
from tidemark.testing.shell.cables import Cable
from tidemark.testing.shell.disks import Disk
from tidemark.testing.shell.seams import BOOT


class ShellBroker(BrokerRuns):
    """One broker, running or not. Its cables stay."""

    def __init__(
        self, node: int, disk: Disk, settings: Mapping[str, str], clients: Cable, peers: Cable
    ) -> None:
        super().__init__()
        self.node = node
        self.clients = clients
        self.peers = peers
        self._disk = disk
        self._settings = settings
        self._boots = 0

    async def _serve(self, join: str | None, task_status: trio.TaskStatus[None]) -> None:
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
        finally:
            self.clients.upstream = self.peers.upstream = None

    async def lose_power(self) -> None:
        """As `kill`, and of what was not synced anything may be there, or not."""
        if self.running is not None:
            self._disk.lose_power()
            await self.kill()
            self._disk.restore()
            self._boots += 1


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return f"127.0.0.1:{bound.getsockname()[1]}"
