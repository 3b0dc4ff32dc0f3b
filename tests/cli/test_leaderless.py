"""A partition that nobody leads: who waits for it is told."""

import pytest
import trio

from tidemark.cli.leaderless import tell_of_leaderless
from tidemark.client import TopicPartition, open_client
from tidemark.testing import open_cluster


async def test_who_waits_for_a_partition_without_a_leader_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic("t", partitions=3, replication_factor=1)
        topic = await client.admin.describe_topic("t")
        gone = next(each for each in topic.partitions if each.leader != 1)
        assert gone.leader is not None
        await cluster.kill(gone.leader)
        at = TopicPartition("t", gone.partition)
        for what, lines in ((["t"], 1), ([at], 1), ([TopicPartition("t", 99)], 0)):
            with trio.move_on_after(11):
                await tell_of_leaderless(client, what)
            said = capsys.readouterr().err.splitlines()
            assert len(said) == lines
            assert all(line.startswith(f"tidemark: {at} has no leader") for line in said)
