"""The client for code without trio."""

import inspect
import socket
import threading
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest

from tidemark.client import (
    Client,
    Consumer,
    ErrorCode,
    Producer,
    RequestError,
    TopicPartition,
)
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.blocking import (
    BlockingClient,
    BlockingConsumer,
    BlockingProducer,
    KeptConnections,
    connect,
    open_client,
    read_batches,
)
from tidemark.client.columns import read_columns
from tidemark.client.options import ConsumerOptions, ProducerOptions
from tidemark.client.settings import ClientSettings
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import Offset
from tidemark.testing import BlockingCluster


@pytest.fixture
def scripts(tidemark_session: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark_session.bootstrap) as client:
        yield client


def write(client: BlockingClient, topic: str, count: int) -> TopicPartition:
    """A topic of one partition with `count` numbered records."""
    client.run(client.admin.create_topic, topic, partitions=1)
    with client.producer(batch_bytes=200) as producer:
        stored = producer.send_all(topic, ((None, b"%d" % index) for index in range(count)))
    assert [record.offset for record in stored] == list(range(count))
    return TopicPartition(topic, 0)


def test_a_script_writes_and_reads(scripts: BlockingClient, topic: str) -> None:
    write(scripts, topic, 2500)
    with scripts.producer() as producer:
        delivery = producer.send(topic, b"last", key=b"k", headers=[("h", None)])
        assert delivery.wait().offset == 2500
        assert delivery.is_done
    with scripts.consumer(topic, until_end=True) as consumer:
        records = list(consumer)
    assert [record.value for record in records] == [b"%d" % i for i in range(2500)] + [b"last"]


def test_a_script_commits_and_seeks(scripts: BlockingClient, topic: str, group: str) -> None:
    here = write(scripts, topic, 10)
    with scripts.consumer(here, group=group, auto_commit_seconds=None) as consumer:
        assert consumer.assignment == {here}
        consumer.fetch()
        position = consumer.position(here)
        consumer.commit()
        assert consumer.committed()[here].offset == position
        assert consumer.end_offsets() == {here: 10}
        assert consumer.beginning_offsets() == {here: 0}
        consumer.seek(here, -1)
        assert [record.value for record in consumer.fetch()] == [b"9"]


def test_what_is_paused_is_handed_out_later(scripts: BlockingClient, topic: str) -> None:
    scripts.run(scripts.admin.create_topic, topic, partitions=2)
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with scripts.producer() as producer:
        for partition in range(2):
            producer.send(topic, b"x", partition=partition)
    with scripts.consumer([here, there]) as consumer:
        consumer.pause(here)
        assert {record.partition for record in consumer.fetch()} == {1}
        consumer.resume(here)
        assert {record.partition for record in consumer.fetch()} == {0}


OF_ITS_TASKS = {
    "assigned",
    "close",
    "commit_until_cancelled",
    "done",
    "expire_until_cancelled",
    "failed",
    "is_callers",
    "find_new_partitions_until_cancelled",
    "is_idempotent",
    "lost",
    "revoked",
    "start",
    "take_back_batches",
}
"""What the client itself calls."""


@pytest.mark.parametrize(
    ("twin", "original"), [(BlockingConsumer, Consumer), (BlockingProducer, Producer)]
)
def test_the_twin_can_do_all_that_the_original_can(twin: type, original: type) -> None:
    public = {name for name in dir(original) if not name.startswith("_")}
    assert public - OF_ITS_TASKS - set(dir(twin)) == set()


def test_errors_come_out_as_they_are(scripts: BlockingClient, topic: str) -> None:
    with pytest.raises(RequestError) as caught:
        scripts.run(scripts.admin.describe_topic, topic)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ValueError, match="not both"), scripts.consumer([]):
        pass
    with (
        pytest.raises(OSError, match=r"127\.0\.0\.1:1: Connection refused"),
        open_client("127.0.0.1:1"),
    ):
        pass


def test_an_error_in_a_block_goes_out_and_leaves_the_client_usable(
    scripts: BlockingClient, topic: str
) -> None:
    here = write(scripts, topic, 1)

    def fail() -> None:
        with scripts.producer(linger_ms=60_000) as producer:
            producer.send(topic, b"never sent")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert scripts.run(scripts.admin.end_offsets, [here]) == {here: 1}


def test_no_thread_is_left_behind(tidemark_session: BlockingCluster) -> None:
    before = threading.active_count()
    with open_client(tidemark_session.bootstrap) as client:
        client.run(client.admin.list_topics)
    assert "tidemark-client" not in [thread.name for thread in threading.enumerate()]
    assert threading.active_count() <= before + 3  # trio keeps a few idle ones for a while


def test_a_range_is_read_on_a_plain_socket(
    tidemark_session: BlockingCluster, scripts: BlockingClient, topic: str
) -> None:
    here = write(scripts, topic, 1000)
    fetched = list(read_batches(tidemark_session.bootstrap, here, 100, 900, fetch_bytes=1000))
    assert len(fetched) > 5
    headers = [header for part in fetched for _, header in iter_headers(part.data)]
    assert headers[0].base_offset <= 100 < headers[0].next_offset
    assert fetched[-1].fetch_offset < 900 <= fetched[-1].next_offset
    assert fetched[0].fetch_offset == 100
    for one, following in pairwise(fetched):
        assert one.next_offset == following.fetch_offset


def test_fetches_that_are_kept_stay_as_they_are_though_memory_is_used_again(
    tidemark_session: BlockingCluster, scripts: BlockingClient, topic: str
) -> None:
    values = [b"%d" % i * 20_000 for i in range(100)]
    scripts.run(scripts.admin.create_topic, topic, partitions=1)
    with scripts.producer() as producer:
        producer.send_all(topic, [(None, value) for value in values])
    here = TopicPartition(topic, 0)
    read = partial(read_batches, tidemark_session.bootstrap, here, 0, 100, fetch_bytes=300_000)
    memory = Buffers()
    assert [bytes(part.data) for part in read(memory=memory)] == (
        known := [bytes(part.data) for part in read()]
    )
    assert len(known) > 5
    kept = list(read(memory=memory))
    assert [bytes(part.data) for part in kept] == known
    places = {pa.py_buffer(part.data).address for part in read(memory=memory)}
    assert len(places) < len(known)
    batches = list(read_columns(tidemark_session.bootstrap, here, 0, 100, fetch_bytes=300_000))
    assert [value for batch in batches for value in batch["value"].to_pylist()] == values


def test_an_empty_range_asks_nobody() -> None:
    assert list(read_batches("127.0.0.1:1", TopicPartition("t", 0), 5, 5)) == []


def test_a_range_that_is_not_there_says_what_is(
    tidemark_session: BlockingCluster, scripts: BlockingClient, topic: str
) -> None:
    here = write(scripts, topic, 10)
    scripts.run(scripts.admin.delete_records, {here: Offset(4)})
    with pytest.raises(RequestError, match=r"the log is from 4 to 10"):
        list(read_batches(tidemark_session.bootstrap, here, 2, 9))


def test_a_range_is_read_on_through_a_restart(tidemark: BlockingCluster, topic: str) -> None:
    with open_client(tidemark.bootstrap) as client:
        here = write(client, topic, 100)
        batches = read_batches(tidemark.bootstrap, here, 0, 100, fetch_bytes=300)
        first = next(batches)
        tidemark.restart()
        rest = list(batches)
    assert first.fetch_offset == 0
    assert rest[-1].next_offset == 100


def test_ranges_share_a_connection_that_is_kept(tidemark: BlockingCluster, topic: str) -> None:
    with open_client(tidemark.bootstrap) as client:
        here = write(client, topic, 100)

    def read(start: int) -> list[int]:
        fetches = read_batches(tidemark.bootstrap, here, start, 100, connections=kept)
        return [fetched.next_offset for fetched in fetches]

    kept = KeptConnections()
    first = read(0)
    (idle,) = kept.idle
    assert read(0) == first
    assert idle in kept.idle
    fetches = read_batches(tidemark.bootstrap, here, 0, 100, fetch_bytes=300, connections=kept)
    next(fetches)
    fetches.close()
    assert idle.is_closed, "an answer was on its way"
    assert not kept.idle
    assert read(0) == first
    tidemark.restart()
    assert read(0) == first, "the kept connection had ended"
    kept.close()


def test_a_connection_is_not_kept_for_ever(tidemark_session: BlockingCluster) -> None:
    now = 0.0
    kept = KeptConnections(clock=lambda: now)
    (address,) = parse_bootstrap(tidemark_session.bootstrap)
    first = kept.open(address, ClientSettings())
    kept.give_back(first, ClientSettings())
    other = kept.open(address, ClientSettings(client_id="another"))
    assert other is not first
    now = 60.0
    assert kept.open(address, ClientSettings()) is first
    kept.give_back(first, ClientSettings())
    kept.give_back(other, ClientSettings(client_id="another"))
    now = 1000.0
    again = kept.open(address, ClientSettings())
    assert first.is_closed
    assert other.is_closed
    again.close()


def test_one_connection_asks_and_is_answered(tidemark_session: BlockingCluster) -> None:
    host, _, port = tidemark_session.bootstrap.partition(":")
    with connect(host, int(port)) as connection:
        answer = connection.request(MetadataRequest(topics=[]), MetadataResponse)
        assert [broker.port for broker in answer.brokers] == [int(port)]
    assert connection.is_closed
    with pytest.raises(ConnectionError):
        connection.request(MetadataRequest(topics=[]), MetadataResponse)


def test_a_peer_that_is_silent_or_gone_is_named() -> None:
    quick = ClientSettings(connect_timeout_seconds=0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with (
            pytest.raises(ConnectionError, match=f"{host}:{port}: no answer within 0.05 s"),
            connect(host, port, quick),
        ):
            pass
    with (
        pytest.raises(
            ConnectionError, match=f"cannot connect to {host}:{port}: Connection refused"
        ),
        connect(host, port, quick),
    ):
        pass


def test_the_options_that_are_passed_on_are_the_clients() -> None:
    for method, options in (
        (Client.producer, ProducerOptions),
        (Client.consumer, ConsumerOptions),
    ):
        parameters = set(inspect.signature(method).parameters) - {"self", "what"}
        assert parameters == set(options.__annotations__)
