"""Broker processes, each on its machine, with its disk."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.chaos.disks import Disk, open_disks
from tests.chaos.networks import Link, Network, open_network
from tests.chaos.weather import Weather
from tests.chaos.workload.racks import rack_of
from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.testing.process import BrokerDidNotStart, BrokerProcess

TIDEMARK: Final = (sys.executable, "-m", "tidemark.cli.main")
_TLS: Final = {
    "peer.ssl.certificate.location": str(CERTIFICATES / "localhost.pem"),
    "peer.ssl.ca.location": str(CERTIFICATES / "ca.pem"),
}
_START_SECONDS: Final = 60.0
_START_ATTEMPTS: Final = 3


class ChaosBroker(BrokerProcess):
    """`tidemark serve` on a machine of the lab."""

    def __init__(
        self,
        node: int,
        network: Network,
        disk: Disk,
        nodes: Sequence[int],
        settings: Mapping[str, str],
    ) -> None:
        super().__init__(disk.path / "data", settings=settings)
        self.node = node
        self.disk = disk
        self.bootstrap = network.bootstrap(node)
        self.peers = network.peer(node)
        self.under: list[str] = []
        """What to put before the next command line, once."""
        self._network = network
        self._log_path = disk.path.parent / f"broker-{node}.log"
        self._ready_path = disk.path.parent / f"broker-{node}.ready"
        self._joined = [network.peer(other) for other in nodes if other != node]
        if node == nodes[0]:
            self._joined = []

    def command(self) -> list[str]:
        command = [*self._network.prefix(self.node), *self.under]
        command += [*TIDEMARK, "serve"]
        command += ["--data-dir", str(self.data_dir)]
        command += ["--node-id", str(self.node), "--http", "127.0.0.1:0"]
        command += ["--rack", rack_of(self.node)]
        command += self._network.arguments(self.node)
        for address in self._joined:
            command += ["--join", address]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        return command

    def spawn(self) -> None:
        """Start, and do not wait: alone, a broker has no majority, and serves nobody."""
        if self.is_running:
            return
        self.kill_if_running()
        with self._log_path.open("ab") as log, self._ready_path.open("wb") as ready:
            # Not of the terminal's group: a Ctrl-C there ends the run, not each broker beside it.
            self._process = subprocess.Popen(
                self.command(), stdout=ready, stderr=log, process_group=0
            )
        self.under = []

    def wait_ready(self) -> None:
        """Until it serves, with a few attempts more, as a service manager's, if it ends before.

        Raises `BrokerDidNotStart`.
        """
        deadline = time.monotonic() + _START_SECONDS
        attempts = 1
        while not self.is_ready:
            if not self.is_running:
                attempts += 1
                if attempts > _START_ATTEMPTS:
                    raise BrokerDidNotStart(f"broker {self.node} ended: {self.log[-2000:]}")
                time.sleep(1)
                self.spawn()
            if time.monotonic() > deadline:
                raise BrokerDidNotStart(f"broker {self.node} waits: {self.log[-2000:]}")
            time.sleep(0.05)

    @property
    def is_ready(self) -> bool:
        return self.is_running and self._ready_path.read_bytes().startswith(b"ready ")

    def kill_if_running(self) -> None:
        if self._process is not None:
            if self.is_running:
                self.kill()
            else:
                self._forget()

    def pause_if_running(self) -> None:
        if self.is_running:
            self.pause()

    def resume_if_running(self) -> None:
        if self.is_running:
            self.resume()

    @contextmanager
    def inject(self, *what: str) -> Iterator[None]:
        """Have `strace` change what system calls of the process do, until the block ends."""
        command = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(self.pid)]
        for each in what:
            command += ["-e", each]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, process_group=0) as tracer:
            try:
                yield
            finally:
                tracer.send_signal(signal.SIGINT)
                tracer.wait(10)


class ChaosCluster:
    """The brokers, and everything a fault needs."""

    def __init__(
        self,
        brokers: dict[int, ChaosBroker],
        network: Network,
        directory: Path,
        *,
        speaks_tls: bool,
    ) -> None:
        self.speaks_tls = speaks_tls
        self.brokers = brokers
        self.network = network
        self.directory = directory
        self.power_cuts: list[tuple[float, frozenset[int]]] = []
        """When who lost what was not synced."""
        self._cuts: Counter[Link] = Counter()
        self._weathers: list[tuple[Link, Weather]] = []

    @property
    def nodes(self) -> list[int]:
        return list(self.brokers)

    @property
    def majority(self) -> int:
        return len(self.brokers) // 2 + 1

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @contextmanager
    def cutting(self, links: Sequence[Link]) -> Iterator[None]:
        """Cut these links until the block ends, beside those that others cut."""
        self._cuts.update(links)
        self.network.cut(+self._cuts)
        try:
            yield
        finally:
            self._cuts.subtract(links)
            self.network.cut(+self._cuts)

    @contextmanager
    def disturbing(self, links: Sequence[Link], weather: Weather) -> Iterator[None]:
        """Have this happen to packets on these links until the block ends, beside what else does.

        Only on networks that have packets.
        """
        more = [(link, weather) for link in links]
        self._weathers += more
        self._disturb()
        try:
            yield
        finally:
            for each in more:
                self._weathers.remove(each)
            self._disturb()

    def _disturb(self) -> None:
        packets = self.network.packets
        assert packets is not None, "this is for networks that can lose single packets"
        weathers: dict[Link, list[Weather]] = {}
        for link, weather in self._weathers:
            weathers.setdefault(link, []).append(weather)
        packets.disturb(weathers)

    def cut_power(self, nodes: Sequence[int]) -> None:
        """All these at once; then they can be started again."""
        brokers = [self.brokers[node] for node in nodes]
        self.power_cuts.append((time.monotonic(), frozenset(nodes)))
        for broker in brokers:
            broker.disk.cut_power()
        for broker in brokers:
            broker.kill_if_running()
        for broker in brokers:
            broker.disk.restore()

    def start_missing(self) -> None:
        """Start whoever is down, and do not wait for them."""
        for broker in self.brokers.values():
            broker.spawn()

    def heal(self) -> None:
        """Start whoever is down, and wait until all are up. Raises `BrokerDidNotStart`."""
        for broker in self.brokers.values():
            broker.resume_if_running()
        self.start_missing()
        for broker in self.brokers.values():
            broker.wait_ready()


@contextmanager
def open_cluster(
    directory: Path,
    nodes: Sequence[int],
    *,
    network_kind: str = "auto",
    speaks_tls: bool = False,
) -> Iterator[ChaosCluster]:
    """A running cluster of these nodes, which may speak TLS among themselves."""
    settings = _TLS if speaks_tls else {}
    with open_network(nodes, network_kind) as network, open_disks(directory, nodes) as disks:
        brokers = {node: ChaosBroker(node, network, disks[node], nodes, settings) for node in nodes}
        cluster = ChaosCluster(brokers, network, directory, speaks_tls=speaks_tls)
        try:
            for broker in brokers.values():
                broker.spawn()
                broker.wait_ready()
            yield cluster
        finally:
            for broker in brokers.values():
                broker.kill_if_running()
