"""Micro-batches in transactions: what readers of committed records see, whatever happens.

Tasks and drivers are played here, each by the functions that Spark has called in it.
"""

import json
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage

from tidemark.client.blocking import BlockingClient
from tidemark.client.columns import read_topic, write_topic
from tidemark.client.offsets import Isolation
from tidemark.client.spark import prepared as transactions
from tidemark.client.spark.prepared import (
    Decided,
    NotStored,
    Prepared,
    commit_batch,
    find_decision,
)
from tidemark.client.spark.sink import (
    BatchWriter,
    StreamWriter,
    Written,
    prepare_batch,
    prepare_rows,
)
from tidemark.client.spark.sink_options import SinkOptions, read_sink_options
from tidemark.client.transaction_descriptions import PreparedTransaction
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import ProducerId, TopicPartition
from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)

BATCH = 7


class DriverDies(Exception):
    """In the middle of what it does."""


class Query:
    """One query: its tasks and its driver, which may be another one each time."""

    def __init__(self, cluster: BlockingCluster, client: BlockingClient, topic: str) -> None:
        self.cluster = cluster
        self.client = client
        self.topic = topic
        self.name = f"q-{uuid.uuid4().hex}"
        self.options: SinkOptions = read_sink_options(
            {"bootstrap": cluster.bootstrap, "topic": topic, "exactlyOnce": "true"}
        )

    def task(self, number: int, *values: str) -> WriterCommitMessage:
        rows = iter([pa.record_batch({"value": list(values)})] if values else [])
        return prepare_batch(self.options, self.name, BATCH, number, rows)

    def tasks(self) -> list[WriterCommitMessage | None]:
        return [self.task(0, "a", "b"), self.task(1, "c"), self.task(2)]

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        StreamWriter(self.options).commit(messages, BATCH)

    def die_committing(self, messages: list[WriterCommitMessage | None], *, after: int) -> None:
        """A driver that has decided, and dies when it has committed so many transactions."""
        commit_one, left = transactions._is_committed, after

        def dying(client: BlockingClient, transaction: PreparedTransaction) -> bool:
            nonlocal left
            if left == 0:
                raise DriverDies
            left -= 1
            return commit_one(client, transaction)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(transactions, "_is_committed", dying)
            with pytest.raises(DriverDies):
                self.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        StreamWriter(self.options).abort(messages, BATCH)

    def run_out(self, number: int) -> None:
        """As if the transaction's time were over: its coordinator aborts it."""
        self.client.run(self.client.admin.fence_producer, f"{self.name}-{number}")

    def seen(self) -> list[str]:
        """Once nothing is open any more."""
        wait_ended(self.client, self.topic)
        return values_of(self.cluster, self.topic)


def wait_ended(client: BlockingClient, topic: str) -> None:
    """A commit is answered before its markers are written."""
    partitions = [TopicPartition(topic, number) for number in range(3)]
    deadline = time.monotonic() + 60
    while client.run(client.admin.end_offsets, partitions) != client.run(
        client.admin.end_offsets, partitions, isolation=Isolation.READ_COMMITTED
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def values_of(cluster: BlockingCluster, topic: str) -> list[str]:
    """What readers of committed records see now."""
    found = read_topic(cluster.bootstrap, topic, isolation=Isolation.READ_COMMITTED).read_all()
    return sorted(value.decode() for value in found["value"].to_pylist())


@pytest.fixture
def query(tidemark_session: BlockingCluster, client: BlockingClient, topic: str) -> Query:
    return Query(tidemark_session, client, topic)


def test_rows_are_seen_when_the_driver_commits_and_not_before(query: Query) -> None:
    messages = query.tasks()
    assert [type(message) for message in messages] == [Prepared, Prepared, Written]
    assert values_of(query.cluster, query.topic) == []
    query.commit(messages)
    assert query.seen() == ["a", "b", "c"]


def test_a_task_that_is_run_again_counts_once(query: Query) -> None:
    query.task(0, "a", "b")
    query.commit(query.tasks())
    assert query.seen() == ["a", "b", "c"]


def test_what_a_batch_that_failed_has_prepared_is_aborted(query: Query) -> None:
    query.abort([query.task(0, "a", "b"), None])
    # Another split of the same rows.
    query.commit([query.task(0, "a"), query.task(1, "b", "c")])
    assert query.seen() == ["a", "b", "c"]


def test_a_driver_that_died_before_it_decided_leaves_nothing(query: Query) -> None:
    query.tasks()
    query.commit([query.task(0, "c", "a"), query.task(1, "b")])
    assert query.seen() == ["a", "b", "c"]


def test_what_a_start_with_more_tasks_has_left_open_keeps_no_reader_waiting(query: Query) -> None:
    query.tasks()
    query.commit([query.task(0, "a", "b", "c")])
    assert query.seen() == ["a", "b", "c"]


def test_a_start_with_fewer_tasks_commits_all_that_was_decided(
    query: Query,
) -> None:
    query.die_committing(query.tasks(), after=1)
    query.commit([query.task(0, "a", "b", "c")])
    assert query.seen() == ["a", "b", "c"]


@pytest.mark.parametrize("committed", [0, 1])
def test_a_driver_that_died_after_it_decided_is_gone_on_for(query: Query, committed: int) -> None:
    messages = query.tasks()
    query.die_committing(messages, after=committed)
    query.abort(messages)  # what is decided stays
    again = query.tasks()
    assert [type(message) for message in again] == [Decided] * 3
    for _ in range(2):  # it may die again, before the checkpoint says that it is done
        query.commit(again)
    assert query.seen() == ["a", "b", "c"]


def test_a_decided_batch_that_ran_out_is_written_anew(query: Query) -> None:
    query.die_committing(query.tasks(), after=0)
    for number in range(2):
        query.run_out(number)
    with pytest.raises(NotStored, match=r"Nothing of it is stored\. Start the query again"):
        query.commit(query.tasks())
    query.commit(query.tasks())
    assert query.seen() == ["a", "b", "c"]


def test_a_batch_of_which_a_part_ran_out_is_an_error_that_says_what_to_do(
    query: Query,
) -> None:
    query.die_committing(query.tasks(), after=1)
    query.run_out(1)
    for _ in range(2):
        with pytest.raises(NotStored, match=f"out since .*: {query.name}-1. The rest is stored."):
            query.commit(query.tasks())
    query.client.run(query.client.admin.delete_group, query.name)
    query.commit(query.tasks())
    assert query.seen() == ["a", "a", "b", "b", "c"]


def test_what_ran_out_before_it_was_decided_is_not_committed(query: Query) -> None:
    messages = query.tasks()
    query.run_out(1)
    with pytest.raises(NotStored, match=r"is not open any more.*Start the query again"):
        query.commit(messages)
    assert find_decision(query.client, query.name, BATCH) is None
    query.abort(messages)
    query.commit(query.tasks())
    assert query.seen() == ["a", "b", "c"]


def test_a_batch_write_is_seen_whole_or_not_at_all(query: Query) -> None:
    def prepared(job: str) -> list[WriterCommitMessage | None]:
        rows = [["a", "b"], ["c"], []]
        return [
            prepare_rows(query.options, job, number, iter([pa.record_batch({"value": values})]))
            for number, values in enumerate(rows)
        ]

    writer = BatchWriter(query.options)
    writer.abort([*prepared("first"), None])
    assert query.seen() == []
    messages = prepared("second")
    assert values_of(query.cluster, query.topic) == []
    writer.commit(messages)
    assert query.seen() == ["a", "b", "c"]


def test_too_many_tasks_are_an_error_before_anything_is_committed(query: Query) -> None:
    messages = [
        Prepared(
            query.name,
            1,
            query.topic,
            PreparedTransaction(
                transactional_id=f"{query.name}-{number}",
                producer_id=ProducerId(10**9 + number),
                epoch=7,
            ),
        )
        for number in range(400)
    ]
    with pytest.raises(ConfigError, match="coalesce the rows"):
        commit_batch(query.client, BATCH, messages)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exactlyOnce": "true", "kafka.acks": "1"}, "exactlyOnce needs kafka.acks all"),
        ({"kafka.transactional.id": "t"}, "set exactlyOnce to true"),
        ({"kafka.transaction.timeout.ms": "1000"}, "set exactlyOnce to true"),
    ],
    ids=["acks", "id", "timeout"],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_sink_options({"bootstrap": "h:1", **options})


def test_a_stream_that_ends_before_its_checkpoint_says_so_stores_no_row_twice(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    target = f"{topic}-2"
    client.run(client.admin.create_topic, target, partitions=3)
    write_topic(
        tidemark_session.bootstrap,
        topic,
        [
            pa.record_batch(
                {"value": [f"{n}" for n in range(500)], "key": [f"{n}" for n in range(500)]}
            )
        ],
    )
    reader = spark.readStream.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    stream = (
        reader.option("startingOffsets", "earliest")
        .load(subscribe=topic)
        .writeStream.format("tidemark")
        .option("bootstrap", tidemark_session.bootstrap)
        .option("topic", target)
        .option("exactlyOnce", "true")
        .option("kafka.transactional.id", "copies")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    for _ in range(2):
        assert stream.start().awaitTermination(120)
        wait_ended(client, target)
        assert sorted(map(int, values_of(tidemark_session, target))) == list(range(500))
        # A driver that dies between the sink's commit and the checkpoint's leaves it like this.
        for path in (*tmp_path.glob("commits/0"), *tmp_path.glob("commits/.0.crc")):
            path.unlink()
    query = json.loads((tmp_path / "metadata").read_text())["id"]
    assert find_decision(client, f"copies-{query}", 0) is not None
