"""Ctrl-C, mostly in code without trio: what was waited for ends, and nothing is lost by it."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from tidemark.client import Consumer, ConsumerRecord, FetchedBatches, TopicPartition
from tidemark.client import open_client as open_trio_client
from tidemark.client.blocking import BlockingClient, BlockingConsumer, open_client
from tidemark.client.wire import Wire
from tidemark.protocol.schema import Message
from tidemark.testing import BlockingCluster, Cluster, open_blocking_cluster


@pytest.fixture
def scripts(tidemark_session: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark_session.bootstrap) as client:
        yield client


@pytest.fixture
def here(scripts: BlockingClient, topic: str) -> TopicPartition:
    scripts.run(scripts.admin.create_topic, topic, partitions=1)
    return TopicPartition(topic, 0)


@pytest.fixture(autouse=True)
def signal_as_ctrl_c() -> Iterator[None]:
    """Another one, which pytest has no handler of its own for."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGUSR1)


@contextmanager
def interrupted_soon() -> Iterator[None]:
    """The block waits for what does not come, and is interrupted."""
    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def test_a_call_that_is_interrupted_has_ended(scripts: BlockingClient) -> None:
    ended: list[str] = []

    async def call() -> None:
        interrupt()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.1)
            ended.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        scripts.run(call)
    assert ended == ["cleaned up"]


def test_what_comes_after_an_interrupted_wait_is_not_taken_for_read(
    scripts: BlockingClient, here: TopicPartition, group: str
) -> None:
    with scripts.consumer(here, group=group) as consumer:
        with interrupted_soon():
            next(iter(consumer))
        with scripts.producer() as producer:
            producer.send(here.topic, b"later").wait()
        time.sleep(0.1)
    with scripts.consumer(here, group=group, until_end=True) as consumer:
        assert [record.value for record in consumer] == [b"later"]


def test_what_had_come_when_its_wait_was_interrupted_is_handed_out_next(
    scripts: BlockingClient, here: TopicPartition, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = Consumer.fetch

    async def fetch_and_interrupt(consumer: Consumer) -> list[ConsumerRecord]:
        records = await fetch(consumer)
        interrupt()
        time.sleep(0.1)  # noqa: ASYNC251 # whoever is interrupted hears of it first
        return records

    with scripts.producer() as producer:
        producer.send_all(here.topic, [(None, b"%d" % index) for index in range(3)])
    with scripts.consumer(here, group=group) as consumer:
        monkeypatch.setattr(Consumer, "fetch", fetch_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            consumer.fetch()
        monkeypatch.undo()
        assert next(iter(consumer)).value == b"0"
    with scripts.consumer(here, group=group, until_end=True) as consumer:
        assert [record.value for record in consumer] == [b"1", b"2"]


def test_batches_that_had_come_when_their_wait_was_interrupted_are_handed_out_next(
    scripts: BlockingClient, here: TopicPartition, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_batches = Consumer.fetch_batches

    async def fetch_and_interrupt(consumer: Consumer) -> FetchedBatches | None:
        fetched = await fetch_batches(consumer)
        interrupt()
        time.sleep(0.1)  # noqa: ASYNC251 # whoever is interrupted hears of it first
        return fetched

    def interrupted_fetch(consumer: BlockingConsumer) -> None:
        monkeypatch.setattr(Consumer, "fetch_batches", fetch_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            consumer.fetch_batches()
        monkeypatch.undo()

    with scripts.producer() as producer:
        producer.send(here.topic, b"0").wait()
    with scripts.consumer(here, group=group) as consumer:
        interrupted_fetch(consumer)
        assert consumer.position(here) == 0
        fetched = consumer.fetch_batches()
        assert fetched is not None
        assert fetched.fetch_offset == 0
        with scripts.producer() as producer:
            producer.send(here.topic, b"1").wait()
        interrupted_fetch(consumer)
    with scripts.consumer(here, group=group, until_end=True) as consumer:
        assert [record.value for record in consumer] == [b"1"]


def test_a_client_can_be_left_after_opening_a_producer_was_interrupted() -> None:
    with open_blocking_cluster() as cluster, open_client(cluster.bootstrap) as client:
        cluster.pause(1)
        with interrupted_soon(), client.producer():
            pass
        cluster.resume(1)
        with client.producer():
            pass


def test_a_flush_that_is_interrupted_keeps_nobody() -> None:
    with open_blocking_cluster() as cluster, open_client(cluster.bootstrap) as client:
        with interrupted_soon(), client.producer() as producer:
            producer.send("t", b"x").wait()
            cluster.pause(1)
            producer.send("t", b"y")
        began = time.monotonic()
    assert time.monotonic() - began < 10


def test_a_client_whose_opening_is_interrupted_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with interrupted_soon(), open_client(f"{host}:{port}"):
            pass
    assert "tidemark-client" not in [thread.name for thread in threading.enumerate()]


def test_a_cluster_can_be_left_after_a_start_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Cluster.start

    async def interrupt_and_start(cluster: Cluster, *nodes: int) -> None:
        interrupt()
        await start(cluster, *nodes)

    with open_blocking_cluster() as cluster:
        cluster.stop(1)
        monkeypatch.setattr(Cluster, "start", interrupt_and_start)
        with pytest.raises(KeyboardInterrupt):
            cluster.start(1)


def test_a_call_that_lasts_longer_than_the_client_says_so(
    tidemark_session: BlockingCluster,
) -> None:
    begun, raised = threading.Event(), list[BaseException]()

    async def wait() -> None:
        begun.set()
        await trio.sleep_forever()

    with open_client(tidemark_session.bootstrap) as client:

        def call() -> None:
            try:
                client.run(wait)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        begun.wait()
    thread.join()
    assert [repr(error) for error in raised] == ["ClosedResourceError('the client is closed')"]


def test_under_trio_too_it_comes_out_as_it_is(
    tidemark_session: BlockingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever task it falls upon, such as one that reads from a connection."""

    def received(wire: Wire, count: int) -> list[Message]:
        raise KeyboardInterrupt

    async def ask() -> None:
        async with open_trio_client(tidemark_session.bootstrap) as client:
            monkeypatch.setattr(Wire, "received", received)
            await client.admin.list_topics()

    with pytest.raises(KeyboardInterrupt):
        trio.run(ask)
