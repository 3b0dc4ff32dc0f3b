"""A broker of three has a full disk: others lead what it led, and producers notice a delay."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.system.small_disks import fill, small_disk, wait_reserved
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing.process_cluster import open_process_cluster

SETTINGS: Final = {"leader.balance.start.grace.ms": "0"}
SECONDS_MAX: Final = 60.0
FULL: Final = 2
PARTITIONS: Final = 6
ASSIGNMENTS: Final = [[1 + (at + n) % 3 for n in range(3)] for at in range(PARTITIONS)]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def leaders(client: BlockingClient) -> dict[int, int]:
    return {each.node_id: each.leaders for each in client.run(client.admin.describe_brokers)}


def write_everywhere(client: BlockingClient) -> list[int]:
    """A record to each partition; their offsets."""
    with client.producer() as producer:
        sent = [producer.send("t", b"value", partition=at) for at in range(PARTITIONS)]
        return [each.wait().offset for each in sent]


def test_leaders_leave_a_full_disk_by_themselves_and_return_when_they_are_asked_to(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with (
        small_disk(folder / f"broker-{FULL}", "128m") as disk,
        open_process_cluster(folder, settings=SETTINGS) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        client.run(client.admin.create_topic, "t", assignments=ASSIGNMENTS)
        wait_until(lambda: leaders(client) == {1: 2, 2: 2, 3: 2})
        assert write_everywhere(client) == [0] * PARTITIONS
        wait_reserved(disk)

        fill(disk / "ballast")
        assert write_everywhere(client) == [1] * PARTITIONS, "once others lead"
        wait_until(lambda: leaders(client) == {1: 3, 2: 0, 3: 3})
        assert "the disk of broker 2 is full" in cluster.brokers[1].log

        (disk / "ballast").unlink()
        plan = client.run(client.admin.balance_leaders, dry_run=True)
        assert not plan.moves, "it may be full again soon"
        wait_until(
            lambda: bool(client.run(client.admin.balance_leaders, dry_run=True, now=True).moves)
        )
        client.run(client.admin.balance_leaders, now=True)
        wait_until(lambda: leaders(client) == {1: 2, 2: 2, 3: 2})
        assert write_everywhere(client) == [2] * PARTITIONS
