"""What a test asks of a cluster that cannot be is refused in a sentence."""

from pathlib import Path

import pytest

from tidemark.client import open_client
from tidemark.testing import open_blocking_cluster, open_cluster


@pytest.mark.parametrize(
    ("brokers", "racks", "message"),
    [
        (0, (), "a cluster has at least one broker, not 0"),
        (-1, (), "a cluster has at least one broker, not -1"),
        (2, ("a", "b", "c"), "3 racks for 2 brokers"),
    ],
)
async def test_so_many_brokers_cannot_be(
    brokers: int, racks: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        async with open_cluster(brokers=brokers, racks=racks):
            pass


async def test_a_lone_broker_is_in_the_rack_that_it_was_given() -> None:
    async with (
        open_cluster(racks=["north"]) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        (broker,) = (await client.admin.describe_cluster()).brokers
        assert broker.rack == "north"


async def test_a_broker_that_there_is_not_is_named_with_those_there_are(tmp_path: Path) -> None:
    async with open_cluster(brokers=2, data_dir=str(tmp_path / "data")) as cluster:
        for act in (cluster.start, cluster.stop, cluster.kill, cluster.restart):
            with pytest.raises(ValueError, match="there is no broker 7; of this cluster are: 1, 2"):
                await act(1, 7)
        for look in (cluster.bootstrap_of, cluster.data_dir_of, cluster.pause, cluster.resume):
            with pytest.raises(ValueError, match="there is no broker 7"):
                look(7)
        with pytest.raises(ValueError, match="there is no broker 7"):
            cluster.cut(1, 7)
        with pytest.raises(ValueError, match="there is no broker 7"):
            cluster.isolate(7)
        with pytest.raises(ValueError, match="there is no broker 7"):
            cluster.delay_disk(7, 1)
        assert set(cluster.brokers) == {1, 2}
        await cluster.start()
        assert set(cluster.brokers) == {1, 2}


def test_the_twin_says_the_same() -> None:
    there_is_not = pytest.raises(ValueError, match=r"no broker 7; of this cluster are: 1$")
    with open_blocking_cluster() as cluster, there_is_not:
        cluster.kill(7)
