"""A broker of a cluster under test: its ports and its data outlive its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import RunningBroker, open_broker

ANY_PORT = "127.0.0.1:0"


class HostedBroker:
    """One broker, running or not. It keeps the ports that it got at its first start."""

    def __init__(self, node: int, data_dir: Path, settings: Mapping[str, str]) -> None:
        self.node = node
        self.data_dir = data_dir
        self.running: RunningBroker | None = None
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
        try:
            async with open_broker(load_settings(options=self._options(join)).settings) as broker:
                self.running = broker
                self.kafka, self.peers = str(broker.kafka_address), str(broker.peer_address)
                if broker.http_address is not None:
                    self.http = str(broker.http_address)
                task_status.started()
                await self._stop.wait()
        finally:
            self.running = None
            self._stopped.set()

    async def stop(self) -> None:
        """As SIGTERM does; nothing if it does not run."""
        if self.running is not None:
            self._stop.set()
            await self._stopped.wait()

    def _options(self, join: str | None) -> dict[str, str]:
        options = {
            **self._settings,
            "listeners": self.kafka,
            "http.listen": self.http,
            "peer.listen": self.peers,
        }
        return options if join is None else {**options, "join": join}
