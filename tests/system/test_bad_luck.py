"""Clusters that lose brokers, or what brokers hold: what is promised, and what is said."""

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.system.attacks import Peer, batch, production
from tests.system.clusters import create_topic, leader_of, values_in, wait_until
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import produce
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster

_HOLDS_AGAIN = "all replicas here hold again what they may have lost"


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


def test_without_a_majority_nothing_is_acknowledged_and_nothing_is_lost(
    three: ProcessCluster, topic: str
) -> None:
    create_topic(three, topic)
    with (
        open_client(three.bootstrap) as client,
        client.producer(delivery_timeout_seconds=4) as producer,
    ):
        producer.send(topic, b"before").wait()
        leader = leader_of(client, topic)
        others = [broker for node, broker in three.brokers.items() if node != leader]
        for broker in others:
            broker.kill()
        try:
            started = time.monotonic()
            with pytest.raises(RequestError, match=r"not stored within 4 s.*no leader"):
                producer.send(topic, b"meanwhile").wait()
            assert time.monotonic() - started > 3, "a majority may come back at any moment"
            code, records = _read_directly(three.brokers[leader].bootstrap, topic)
            assert code is ErrorCode.NOT_LEADER_OR_FOLLOWER, "it cannot know what is committed now"
            assert not records
        finally:
            three.start_missing()
        leader_of(client, topic)
        producer.send(topic, b"after").wait()
        values = values_in(client, topic)
    # What was given up may have been stored, once.
    assert [value for value in values if value != b"meanwhile"] == [b"before", b"after"]
    assert values.count(b"meanwhile") <= 1


def _read_directly(bootstrap: str, topic: str) -> tuple[ErrorCode, bytes]:
    with Peer(bootstrap) as peer:
        partition = peer.fetch(topic)
    assert partition.records is None or isinstance(partition.records, memoryview)
    return ErrorCode(partition.error_code), bytes(partition.records or b"")


def test_a_minority_gives_up_what_only_it_has(three: ProcessCluster, topic: str) -> None:
    """A leader took records that its followers never saw, with acks=1, and died."""
    create_topic(three, topic)
    with open_client(three.bootstrap) as client:
        with client.producer() as producer:
            producer.send(topic, b"committed").wait()
        leader = leader_of(client, topic)
        old = three.brokers[leader]
        others = [broker for node, broker in three.brokers.items() if node != leader]
        for broker in others:
            broker.pause()
        assert _produce_directly(old.bootstrap, topic, b"only here") is ErrorCode.NONE
        # With them goes what the leader had sent, and what they would read on waking up.
        for broker in (*others, old):
            broker.kill()
        with ThreadPoolExecutor() as threads:
            list(threads.map(BrokerProcess.start, others))
        leader_of(client, topic, after=leader)
        with client.producer() as producer:
            for number in range(5):
                producer.send(topic, b"%d" % number).wait()
        old.start()
        expected = [b"committed", *(b"%d" % number for number in range(5))]
        assert values_in(client, topic) == expected
        wait_until(
            lambda: len({_log_of(node, topic, three) for node in three.brokers}) == 1,
            "three logs with the same bytes",
        )
    assert b"only here" not in _log_of(leader, topic, three)


def _produce_directly(bootstrap: str, topic: str, value: bytes) -> ErrorCode:
    with Peer(bootstrap) as peer:
        request = production(topic, batch(value), acks=1)
        answer = peer.ask(request, 9, produce.ProduceResponse)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def _log_of(node: int, topic: str, cluster: ProcessCluster) -> bytes:
    segments = sorted((cluster.brokers[node].data_dir / f"{topic}-0").glob("*.log"))
    return b"".join(segment.read_bytes() for segment in segments)


def test_a_journal_with_a_flipped_bit_is_repaired_from_the_others(
    three: ProcessCluster, topic: str
) -> None:
    create_topic(three, topic)
    values = [b"%d %s" % (number, topic.encode()) for number in range(20)]
    with open_client(three.bootstrap) as client:
        with client.producer() as producer:
            for value in values:
                producer.send(topic, value).wait()
        damaged, other = three.brokers[1], three.brokers[2]
        _wait_stored(three, topic, values[-1])
        damaged.kill()
        _flip_where(damaged.data_dir / "journal", values[10])
        said_before = len(damaged.log)
        damaged.start()
        assert re.search(r"\.journal is corrupt at byte \d+", damaged.log[said_before:])
        wait_until(
            lambda: len({_log_of(node, topic, three) for node in three.brokers}) == 1,
            "three logs with the same bytes",
        )
        wait_until(
            lambda: _HOLDS_AGAIN in damaged.log[said_before:],
            "what was damaged is said to be there",
        )
        # It counts now, and votes.
        other.kill()
        wait_until(lambda: _is_led_by_who_runs(three, client, topic), "the two have a leader")
        assert values_in(client, topic) == values
        with client.producer() as producer:
            producer.send(topic, b"more").wait()
        other.start()


def _is_led_by_who_runs(cluster: ProcessCluster, client: BlockingClient, topic: str) -> bool:
    leader = client.run(client.admin.describe_topic, topic).partitions[0].leader
    return leader is not None and cluster.brokers[leader].is_running


def _wait_stored(cluster: ProcessCluster, topic: str, value: bytes) -> None:
    wait_until(
        lambda: all(value in _log_of(node, topic, cluster) for node in cluster.brokers),
        "all three have all values",
    )


def _flip_where(journal: Path, words: bytes) -> None:
    for path in sorted(journal.glob("*.journal")):
        data = path.read_bytes()
        at = data.find(words)
        if at >= 0:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(bytes([data[at] ^ 1]))
            return
    raise AssertionError(f"{words!r} is not in {journal}")
