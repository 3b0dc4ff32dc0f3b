"""A broker of a cluster under test: its ports and its data outlive its runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import open_broker
from tidemark.testing.broker_runs import BrokerRuns
from tidemark.testing.slow_files import SlowFiles

ANY_PORT = "127.0.0.1:0"


class HostedBroker(BrokerRuns):
    """One broker, running or not. It keeps the ports that it got at its first start."""

    def __init__(self, node: int, data_dir: Path, settings: Mapping[str, str]) -> None:
        super().__init__()
        self.node = node
        self.data_dir = data_dir
        self.files = SlowFiles()
        self._delay = ExitStack()
        self._settings = {**settings, "data.dir": str(data_dir)}
        self.kafka = self._settings.pop("listeners", ANY_PORT)
        self.http = self._settings.pop("http.listen", ANY_PORT)
        self.peers = self._settings.pop("peer.listen", ANY_PORT)

    @property
    def ports(self) -> set[int]:
        """Where it listens now."""
        broker = self.running
        if broker is None:
            return set()
        bound = [*broker.listeners.values(), broker.http_address, broker.peer_address]
        return {address.port for address in bound if address is not None}

    async def _serve(self, join: str | None, task_status: trio.TaskStatus[None]) -> None:
        settings = load_settings(options=self._options(join)).settings
        async with open_broker(settings, files=self.files) as broker:
            self.running = broker
            self.kafka, self.peers = str(broker.kafka_address), str(broker.peer_address)
            if broker.http_address is not None:
                self.http = str(broker.http_address)
            task_status.started()
            await self._stop.wait()

    async def kill(self) -> None:
        if self.running is not None:
            self.delay_disk(0)
        await super().kill()

    def delay_disk(self, seconds: float) -> None:
        """Have each sync take so much longer. It is its disk's thread that waits, and never the
        loop, though a sync may go there on a quick disk: here the loop is every broker's."""
        self._delay.close()
        if seconds and self.running is not None:
            self._delay.enter_context(self.running.node.disk.others())
        self.files.delay(seconds)

    def pause(self) -> None:
        assert self.running is not None, "it does not run"
        super().pause()

    def _options(self, join: str | None) -> dict[str, str]:
        options = {
            **self._settings,
            "listeners": self.kafka,
            "http.listen": self.http,
            "peer.listen": self.peers,
        }
        return options if join is None else {**options, "join": join}
