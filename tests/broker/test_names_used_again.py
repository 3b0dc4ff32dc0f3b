"""A topic that has the name of a deleted one, when its brokers start again."""

from pathlib import Path

import pytest

from tests.broker.clusters import Brokers, insist, open_brokers, wait_until
from tests.broker.handlers.producing import batch, produce, request
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset

THREE = (1, 2, 3)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that starts alone does not wait for a leader of the metadata."""
    monkeypatch.setattr("tidemark.broker.metadata.cluster_replica.LEADER_SECONDS_MAX", 0.1)
    monkeypatch.setattr("tidemark.broker.metadata.hosting.LEADER_SECONDS_MAX", 0.1)


async def write(brokers: Brokers) -> None:
    async def ask() -> None:
        replicas = [(node, node.topics.replica("waves", 0)) for node in brokers.nodes]
        serving = [node for node, replica in replicas if replica and replica.is_serving]
        if not serving:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE)
        assert (await produce(serving[0], request(batch(), topic="waves"))).error_code == 0

    await insist(ask)


def all_hold(brokers: Brokers, end: int) -> bool:
    replicas = [node.topics.replica("waves", 0) for node in brokers.nodes]
    return all(each and each.is_available and each.log_end >= Offset(end) for each in replicas)


async def test_a_deletion_that_is_heard_of_late_leaves_the_files_of_the_later_topic(
    tmp_path: Path,
) -> None:
    """Who starts does not know how far the metadata are committed, and hears it one by one."""
    waves = NewTopic(name="waves", partitions=1, replication_factor=3)
    async with open_brokers(tmp_path, 3) as brokers:
        await brokers.create(waves)
        await wait_until(lambda: all_hold(brokers, 0))
        await brokers.delete("waves")
        await brokers.create(waves)
        await wait_until(lambda: all_hold(brokers, 0))
        await write(brokers)
        await wait_until(lambda: all_hold(brokers, 1))
        await brokers.stop(*THREE)
        for number in THREE:
            await brokers.start(number)
        await wait_until(lambda: all_hold(brokers, 1))
