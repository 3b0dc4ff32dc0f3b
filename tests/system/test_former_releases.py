"""The data directory of a former build is served, with all that is in it.

`tests/golden/5855a08b.tar.xz` is that of a broker of the build of that commit, the first of version
2 of the protocol between brokers, as `kill -9` left it: a journal to be redone, a transaction that
was kept and one that was taken back, the commits of a group of either protocol, and a quota.
"""

import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.testing.process import BrokerProcess, open_broker_process

FORMER: Final = Path(__file__).parents[1] / "golden" / "5855a08b.tar.xz"
RIDES: Final = [b"ride 0", b"ride 1", b"ride 2", b"ride 3", b"ride 4", b"ride 5"]
SETTINGS: Final = {"offsets.retention.minutes": "100000000"}
"""The groups are as old as the directory."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with tarfile.open(FORMER) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    with open_broker_process(tmp_path / "data", settings=SETTINGS) as process:
        yield process


def values(client: BlockingClient, topic: str, isolation: str = "read_uncommitted") -> list[bytes]:
    with client.consumer(topic, until_end=True, isolation=isolation) as consumer:
        return sorted(record.value or b"" for record in consumer)


def test_what_a_former_release_has_left_is_served(broker: BrokerProcess) -> None:
    with open_client(broker.bootstrap) as client:
        assert values(client, "rides") == sorted([*RIDES, b"kept", b"taken back"])
        assert values(client, "rides", "read_committed") == sorted([*RIDES, b"kept"])
        assert values(client, "tides") == [b"tide %d" % number for number in range(6)]
        quotas = client.run(client.admin.describe_quotas)
        assert [each.values for each in quotas] == [{"producer_byte_rate": 1_000_000}]


@pytest.mark.parametrize("group", ["classic", "consumers"])
def test_groups_go_on_where_they_were(broker: BrokerProcess, group: str) -> None:
    with (
        open_client(broker.bootstrap) as client,
        client.consumer("tides", group=group, until_end=True) as consumer,
    ):
        assert [record.value for record in consumer] == [b"tide 4", b"tide 5"]


def test_what_is_written_on_top_of_it_is_there_after_the_next_start(broker: BrokerProcess) -> None:
    with (
        open_client(broker.bootstrap) as client,
        client.producer(transactional_id="tx") as producer,
        producer.transaction(),
    ):
        producer.send("rides", b"more")
    broker.kill()
    broker.start()
    wanted, deadline = sorted([*RIDES, b"kept", b"more"]), time.monotonic() + 30
    with open_client(broker.bootstrap) as client:
        # The commit was acknowledged once it was decided. Whether the partition had been told of it
        # before the kill is chance; if not, the start tells it.
        while (found := values(client, "rides", "read_committed")) != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
