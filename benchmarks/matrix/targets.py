"""What a workload runs on: one broker of ours, three of them, or whatever listens at an address."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness import STEADY_LEADERS
from tidemark.cli.processes import listener_of
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.process import open_broker_process
from tidemark.testing.process_cluster import open_process_cluster

Address = tuple[str, int]
_LEADERS_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A broker, and which partitions of a topic it leads."""

    address: Address
    partitions: Sequence[int]


class Topic:
    """One that is there for a workload."""

    def __init__(self, client: BlockingClient, name: str, lanes: Sequence[Lane]) -> None:
        self._client = client
        self.name = name
        self.lanes = lanes

    def ends(self) -> Mapping[int, int]:
        """The end offset of each partition."""
        found = self._client.run(self._client.admin.end_offsets, self._partitions)
        return {asked.partition: offset for asked, offset in found.items()}

    def begin_anew(self) -> None:
        """Give up all records, and leave nothing for the disk to do."""
        all_of_it = dict.fromkeys(self._partitions, Offset(-1))
        self._client.run(self._client.admin.delete_records, all_of_it)
        os.sync()

    @property
    def _partitions(self) -> Sequence[TopicPartition]:
        return [TopicPartition(self.name, p) for lane in self.lanes for p in lane.partitions]


class Target:
    """Brokers that run already. `pids` are their processes, whose time and memory count."""

    def __init__(
        self, name: str, bootstrap: str, pids: Sequence[int], *, is_tidemark: bool
    ) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.pids = pids
        self._is_tidemark = is_tidemark

    @contextmanager
    def topic(self, name: str, *, partitions: int, replicas: int, flush: str) -> Iterator[Topic]:
        """A topic for the length of the block, with leaders for all its partitions."""
        with open_client(self.bootstrap) as client:
            client.run(
                client.admin.create_topic,
                name,
                partitions=partitions,
                replication_factor=replicas,
                configs=self._configs(flush),
            )
            try:
                yield Topic(client, name, _lanes(client, name, partitions))
            finally:
                client.run(client.admin.delete_topic, name)

    def _configs(self, flush: str) -> Mapping[str, str]:
        """Kafka syncs before it answers if it is told to sync after each message."""
        if self._is_tidemark:
            return {"flush": flush}
        return {"flush.messages": "1"} if flush == "commit" else {}


def _lanes(client: BlockingClient, topic: str, partitions: int) -> Sequence[Lane]:
    deadline = time.monotonic() + _LEADERS_SECONDS_MAX
    while True:
        try:
            described = client.run(client.admin.describe_topic, topic).partitions
        except RequestError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            described = ()
        if len(described) == partitions and all(p.leader is not None for p in described):
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} has partitions without a leader")
        time.sleep(0.05)
    cluster = client.run(client.admin.describe_cluster)
    addresses = {broker.node_id: (broker.host, broker.port) for broker in cluster.brokers}
    led: dict[Address, list[int]] = {}
    for partition in described:
        assert partition.leader is not None
        led.setdefault(addresses[partition.leader], []).append(partition.partition)
    return [Lane(address=address, partitions=led[address]) for address in sorted(led)]


@contextmanager
def open_target(directory: Path, replicas: int) -> Iterator[Target]:
    """Brokers of our own, as many as there are replicas."""
    directory.mkdir()
    if replicas == 1:
        with open_broker_process(directory / "data") as broker:
            yield Target("tidemark", broker.bootstrap, [broker.pid], is_tidemark=True)
        return
    with open_process_cluster(directory, count=replicas, settings=STEADY_LEADERS) as cluster:
        pids = [broker.pid for broker in cluster.brokers.values()]
        yield Target("tidemark", cluster.bootstrap, pids, is_tidemark=True)


def other_target(bootstrap: str, *, called: str | None = None) -> Target:
    """What listens there, on this machine. Raises `LookupError` if nothing does."""
    ports = [int(address.rpartition(":")[2]) for address in bootstrap.split(",")]
    pids = sorted({listener_of(port) for port in ports})
    return Target(called or bootstrap, bootstrap, pids, is_tidemark=False)
