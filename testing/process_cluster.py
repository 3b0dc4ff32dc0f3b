"""Several broker processes that have joined each other, for what only real processes can show.

Blocking, like `process`. The first broker founds the cluster; the others join it. Each keeps its
ports over restarts, so clients and brokers find it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tidemark.client.blocking import open_client
from tidemark.partitions.state_machines.cluster_brokers import voter_count
from tidemark.testing.process import BrokerDidNotStart, BrokerProcess

_VOTE_SECONDS_MAX: Final = 60.0


class ProcessCluster:
    """The brokers by node id, counted from 1. Made by `open_process_cluster`."""

    def __init__(
        self,
        directory: Path,
        count: int,
        settings: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = directory
        self._settings = dict(settings)
        self._environment = environment
        self.brokers: dict[int, BrokerProcess] = {}
        self._count = count

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> None:
        """Start all, one after the other, and wait until enough of them vote on the metadata.

        Before, there are moments without a controller, and librdkafka's admin client does not ask
        again for minutes when it hears of one. Raises `BrokerDidNotStart`.
        """
        for node in range(1, self._count + 1):
            joined = [f"--join={broker.peers}" for broker in self.brokers.values()]
            broker = BrokerProcess(
                self._directory / f"broker-{node}",
                settings=self._settings,
                arguments=["--node-id", str(node), *joined],
                environment=self._environment,
            )
            broker.start()
            self.brokers[node] = broker
        self._wait_voters()

    def _wait_voters(self) -> None:
        end = time.monotonic() + _VOTE_SECONDS_MAX
        with open_client(self.bootstrap) as client:
            while time.monotonic() < end:
                quorum = client.run(client.admin.describe_metadata_quorum)
                if quorum is not None and len(quorum.voters) == voter_count(self._count):
                    return
                time.sleep(0.05)
        raise BrokerDidNotStart(f"not {voter_count(self._count)} of them vote on the metadata")

    def start_missing(self) -> None:
        """Start again whoever was killed, all at once: one alone may have no majority to serve.

        Raises `BrokerDidNotStart`.
        """
        missing = [broker for broker in self.brokers.values() if not broker.is_running]
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(BrokerProcess.start, missing))

    def kill_all(self) -> None:
        for broker in self.brokers.values():
            if broker.is_running:
                broker.kill()


@contextmanager
def open_process_cluster(
    directory: Path,
    *,
    count: int = 3,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[ProcessCluster]:
    """Brokers that run when the block begins and are gone, by `kill -9`, when it ends."""
    cluster = ProcessCluster(directory, count, settings or {}, environment)
    with ExitStack() as stack:
        stack.callback(cluster.kill_all)
        cluster.start()
        yield cluster
