"""`tidemark txn`, against a broker."""

import json
import re
import uuid

import pytest
from confluent_kafka import KafkaException

from tests.cli.conftest import Command
from tests.clients.transactions import producer, read, send
from tidemark.cli.txn.search import Places, places_in, warn_of
from tidemark.client import PartitionDescription, TopicDescription, TopicPartition
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, NodeId
from tidemark.testing import BlockingCluster


@pytest.fixture
def topic(command: Command, name: str) -> str:
    command("topic", "create", name, "-p", "1")
    return name


def rows(command: Command, *arguments: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(
        command("txn", "list", *arguments, "-o", "json").out
    )
    return found


def test_an_open_one_is_listed_described_and_aborted(
    command: Command, topic: str, tidemark_session: BlockingCluster
) -> None:
    client = producer(tidemark_session.bootstrap, topic)
    client.begin_transaction()
    send(client, topic, "never")
    client.flush(10)
    (row,) = [each for each in rows(command) if each["transactional_id"] == topic]
    assert (row["state"], row["partition"]) == ("Ongoing", None)
    assert re.fullmatch(r"\d+ s", str(row["open_for"]))
    assert isinstance(row["open_for_seconds"], float)
    assert topic not in [each["transactional_id"] for each in rows(command, "-s", "Empty")]
    described = json.loads(command("txn", "describe", topic, "-o", "json").out)
    assert described["partitions"] == [{"topic": topic, "partition": 0}]
    assert (described["state"], described["timeout_ms"]) == ("Ongoing", 10_000)
    assert 0 <= described["open_for_seconds"] < 60
    assert b"OPEN-FOR" in command("txn", "describe", topic).out
    looked = command("txn", "abort", topic, "--dry-run")
    assert (looked.status, topic.encode() in looked.out) == (0, True)
    assert command("txn", "abort", topic, "--yes").status == 0
    with pytest.raises(KafkaException):
        client.commit_transaction(10)
    heir = producer(tidemark_session.bootstrap, topic)
    heir.begin_transaction()
    send(heir, topic, "read")
    heir.commit_transaction(10)
    assert read(tidemark_session.bootstrap, topic) == ["read"]
    (row,) = [each for each in rows(command) if each["transactional_id"] == topic]
    assert (row["open_for"], row["open_for_seconds"]) == (None, None)


def test_one_that_hangs_is_marked_and_ended_by_its_partition(
    command: Command, topic: str, tidemark_session: BlockingCluster
) -> None:
    _hang(tidemark_session, topic)
    (row,) = [each for each in rows(command) if each["state"] == "Hanging"]
    assert (row["partition"], row["offset"], row["producer_id"]) == (f"{topic}-0", 0, 770_077)
    assert isinstance(row["silent_for_seconds"], float)
    other = command("txn", "abort", "--topic", topic, "--producer", "5", "--yes")
    assert (other.status, "nothing hangs" in other.err) == (1, True)
    nowhere = command("txn", "abort", "--topic", topic, "--partition", "7", "--yes")
    assert (nowhere.status, f"{topic} has no partition 7" in nowhere.err) == (1, True)
    assert command("txn", "abort", "--topic", topic, "--dry-run").status == 0
    assert rows(command, "-s", "Hanging"), "nothing was done"
    assert command("txn", "abort", "-t", topic, "-p", "0", "--yes").status == 0
    assert rows(command, "-s", "Hanging") == []
    assert command("produce", topic, stdin=b"behind it\n").status == 0
    assert read(tidemark_session.bootstrap, topic) == ["behind it"]


@pytest.mark.parametrize(
    ("arguments", "status", "hint"),
    [
        (("abort",), 2, "--topic"),
        (("abort", "x", "--topic", "t"), 2, "--topic"),
        (("describe", "nobody's"), 1, "nobody's"),
    ],
)
def test_what_cannot_be_says_what_to_give(
    command: Command, arguments: tuple[str, ...], status: int, hint: str
) -> None:
    refused = command("txn", *arguments)
    assert (refused.status, hint in refused.err) == (status, True)


def _hang(cluster: BlockingCluster, topic: str) -> None:
    """A transaction that no coordinator knows. Clients cannot make one any more, so this does."""
    broker = cluster._cluster._hosted[1].running
    assert broker is not None
    replica = broker.node.topics.replica(topic, 0)
    assert replica is not None
    batch = encode_batch(
        [Record(timestamp_ms=1, value=b"hanging")],
        producer_id=770_077,
        producer_epoch=3,
        base_sequence=0,
        is_transactional=True,
    )
    cluster._run_sync(replica.append_own, batch)


def test_a_partition_that_nobody_leads_is_not_waited_for() -> None:
    def partition(number: int, leader: NodeId | None) -> PartitionDescription:
        one = NodeId(1)
        return PartitionDescription(
            partition=number,
            leader=leader,
            leader_epoch=Epoch(0),
            replicas=(one,),
            in_sync=(one,),
        )

    topic = TopicDescription(
        name="t",
        topic_id=uuid.UUID(int=1),
        is_internal=False,
        partitions=(partition(0, NodeId(1)), partition(1, None), partition(2, None)),
    )
    first, second, third = (TopicPartition("t", number) for number in range(3))
    assert places_in([topic]) == Places(led=[first], leaderless=[second, third])
    assert places_in([topic], 0) == Places(led=[first], leaderless=[])


def test_what_is_not_searched_is_said_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for number, more in ((0, None), (1, ""), (2, " and 1 more")):
        warn_of([TopicPartition("t", each) for each in range(number)])
        line = f"tidemark: without a leader, t-0{more} cannot be searched for what hangs\n"
        assert capsys.readouterr().err == ("" if more is None else line)
