"""Three broker processes, each on its machine, with its disk."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.chaos.disks import Disk, open_disks
from tests.chaos.networks import Network, open_network
from tidemark.testing.process import BrokerDidNotStart, BrokerProcess

_KAFKA_PORT: Final = 9092
_PEER_PORT: Final = 9093
_START_SECONDS: Final = 30.0
_START_ATTEMPTS: Final = 3


class ChaosBroker(BrokerProcess):
    """`tidemark serve` on a machine of the lab."""

    def __init__(self, node: int, network: Network, disk: Disk, nodes: Sequence[int]) -> None:
        super().__init__(disk.path / "data")
        self.node = node
        self.disk = disk
        self._network = network
        self._log_path = disk.path.parent / f"broker-{node}.log"
        base = 0 if network.can_cut else 10 * node
        self.bootstrap = f"{network.host(node)}:{_KAFKA_PORT + base}"
        self._peers = {
            other: f"{network.host(other)}:{_PEER_PORT + (0 if network.can_cut else 10 * other)}"
            for other in nodes
        }
        self.peers = self._peers[node]
        self._first = nodes[0]

    def command(self) -> list[str]:
        command = [*self._network.prefix(self.node), *super().command()]
        command += ["--node-id", str(self.node)]
        if self.node != self._first:
            for other, address in self._peers.items():
                if other != self.node:
                    command += ["--join", address]
        return command

    def start_again(self) -> None:
        """Start, with a few attempts: what a service manager would do."""
        if self.is_running:
            return
        if self._process is not None:
            self._forget()
        for attempt in range(_START_ATTEMPTS):
            try:
                self.start(timeout_seconds=_START_SECONDS)
            except BrokerDidNotStart:
                if attempt + 1 == _START_ATTEMPTS:
                    raise
                time.sleep(1)
            else:
                return

    def kill_if_running(self) -> None:
        if self._process is not None:
            if self.is_running:
                self.kill()
            else:
                self._forget()

    @contextmanager
    def inject(self, *what: str) -> Iterator[None]:
        """Have `strace` change what system calls of the process do, until the block ends."""
        command = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(self.pid)]
        for each in what:
            command += ["-e", each]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
            try:
                yield
            finally:
                tracer.send_signal(signal.SIGINT)
                tracer.wait(10)


class ChaosCluster:
    """The brokers, and everything a fault needs."""

    def __init__(self, brokers: dict[int, ChaosBroker], network: Network) -> None:
        self.brokers = brokers
        self.network = network

    @property
    def nodes(self) -> list[int]:
        return list(self.brokers)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def heal(self) -> None:
        """End all that is wrong, and start whoever is down."""
        self.network.cut(())
        for broker in self.brokers.values():
            if broker.is_running:
                broker.resume()
        self.start_missing()

    def start_missing(self) -> None:
        """Start whoever is down, all at once: one alone has no majority, and waits for the others.

        Raises `BrokerDidNotStart`.
        """
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(ChaosBroker.start_again, self.brokers.values()))


@contextmanager
def open_cluster(directory: Path, nodes: Sequence[int]) -> Iterator[ChaosCluster]:
    """A running cluster of these nodes."""
    with open_network(nodes) as network, open_disks(directory, nodes) as disks:
        brokers = {node: ChaosBroker(node, network, disks[node], nodes) for node in nodes}
        try:
            for broker in brokers.values():
                broker.start(timeout_seconds=_START_SECONDS)
            yield ChaosCluster(brokers, network)
        finally:
            for broker in brokers.values():
                broker.kill_if_running()
