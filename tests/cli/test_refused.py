"""A partition that takes no records: who writes to it is told, and why."""

import pytest
import trio

from tidemark.cli.refused import tell_of_refused
from tidemark.client import TopicPartition, open_client
from tidemark.testing import open_cluster


async def test_who_writes_to_a_partition_that_refuses_is_told_once_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
        configs = {"min.insync.replicas": "3"}
        await client.admin.create_topic("t", partitions=1, replication_factor=3, configs=configs)
        (partition,) = (await client.admin.describe_topic("t")).partitions
        await cluster.kill(next(node for node in (2, 3) if node != partition.leader))
        async with client.producer() as producer:
            assert producer.refusals() == {}
            delivery = await producer.send("t", b"x")
            with trio.move_on_after(9):
                await tell_of_refused(producer)
            ((at, answer),) = producer.refusals().items()
            assert at == TopicPartition("t", 0)
            assert answer.startswith("NOT_ENOUGH_REPLICAS")
            said = capsys.readouterr().err.splitlines()
            assert said == [f"tidemark: {at} takes no records, and is asked again: {answer}"]
            await client.admin.alter_configs("t", {"min.insync.replicas": "1"})
            await delivery.wait()
            assert producer.refusals() == {}
