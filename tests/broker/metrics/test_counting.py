"""What of a topic's records is counted on their way in and out."""

from pathlib import Path

from tests.broker.nodes import open_node
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset


async def test_bytes_and_records_are_counted_in_and_out(tmp_path: Path) -> None:
    async with open_node(tmp_path, topic_defaults={"flush": "os"}) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        replica, counts = topic.replicas[0], node.metrics.topic("waves")
        records = [Record(value=b"x", timestamp_ms=1) for _ in range(5)]
        sizes = []
        for _ in range(2):
            batch = bytearray(encode_batch(records))
            sizes.append(len(batch))
            replica.produce(batch, api_version=9)
        assert (counts.records_in.value, counts.bytes_in.value) == (10, sum(sizes))

        found = replica.read(Offset(0), bytes_max=sizes[0], at_least_one=True)
        replica.sent(found, Offset(0))
        assert (counts.records_out.value, counts.bytes_out.value) == (5, sizes[0])

        rest = replica.read(Offset(7), bytes_max=9999, at_least_one=True)
        replica.sent(rest, Offset(7))
        assert counts.records_out.value == 5 + 3, "those before the offset were not asked for"
