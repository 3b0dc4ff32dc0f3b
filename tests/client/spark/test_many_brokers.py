"""Readers of a cluster whose leaders move and die, without Spark around them."""

import pickle
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.columns import write_topic
from tidemark.client.read_levels import ReadLevel
from tidemark.client.spark.batch import BatchReader
from tidemark.client.spark.driver import CannotReach
from tidemark.client.spark.options import read_options
from tidemark.protocol.types import NodeId
from tidemark.testing import BlockingCluster, open_blocking_cluster

COUNT = 20_000


@pytest.fixture(scope="module")
def three() -> Iterator[BlockingCluster]:
    with open_blocking_cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def filled(three: BlockingCluster, topic: str) -> str:
    with open_client(three.bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=1, replication_factor=3)
    rows = {"value": [b"%d" % number for number in range(COUNT)]}
    for _ in range(2):
        write_topic(three.bootstrap, topic, [pa.record_batch(rows)])
    return topic


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def planned(
    cluster: BlockingCluster, topic: str, **options: str
) -> tuple[BatchReader, InputPartition]:
    given = {"bootstrap": cluster.bootstrap, "subscribe": topic, **options}
    reader = BatchReader(read_options(given, streaming=False), ("offset",))
    (partition,) = reader.partitions()
    return pickle.loads(pickle.dumps((reader, partition)))  # type: ignore[no-any-return] # as it was


def move(client: BlockingClient, cluster: BlockingCluster, topic: str) -> None:
    leader = cluster.leader_of(topic)
    target = next(node for node in cluster.nodes if node != leader)
    client.run(client.admin.move_leader, topic, 0, to=NodeId(target))


def test_a_task_goes_on_when_the_leader_moves_and_when_it_dies(
    three: BlockingCluster, filled: str
) -> None:
    reader, partition = planned(three, filled, batchBytes="20000")
    batches = reader.read(partition)
    offsets = next(batches)["offset"].to_pylist()
    with open_client(three.bootstrap) as client:
        move(client, three, filled)
    offsets += next(batches)["offset"].to_pylist()
    offsets += next(batches)["offset"].to_pylist()
    leader = three.leader_of(filled)
    assert leader is not None
    three.kill(leader)
    try:
        for batch in batches:
            offsets += batch["offset"].to_pylist()
    finally:
        three.start(leader)
        three.wait_caught_up()
    assert offsets == list(range(2 * COUNT))


@pytest.mark.parametrize("level", ReadLevel)
def test_every_read_level_has_all_that_was_stored(
    three: BlockingCluster, filled: str, level: ReadLevel
) -> None:
    three.wait_caught_up()
    reader, partition = planned(three, filled, readLevel=level.value)
    offsets = [each for batch in reader.read(partition) for each in batch["offset"].to_pylist()]
    assert offsets == list(range(2 * COUNT))


def test_a_leader_that_is_lost_for_good_is_an_error_that_says_what_to_do(
    three: BlockingCluster, filled: str
) -> None:
    patience = {"kafka.default.api.timeout.ms": "500", "kafka.request.timeout.ms": "500"}
    reader, partition = planned(three, filled, **patience)
    leader = three.leader_of(filled)
    assert leader is not None
    others = [node for node in three.nodes if node != leader]
    three.kill(leader, others[0])
    try:
        with pytest.raises(CannotReach, match=f"reading {filled}-0: .*for 0.5 s; see that the br"):
            list(reader.read(partition))
    finally:
        three.start(leader, others[0])
