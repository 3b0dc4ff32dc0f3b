"""The fixtures that we hand to others do what their docstrings say."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio
from confluent_kafka import Producer
from trio.testing import MockClock

from tidemark.client import open_client
from tidemark.protocol.errors import ConfigError, StorageError
from tidemark.testing import (
    BlockingCluster,
    open_blocking_cluster,
    open_broker_process,
    open_cluster,
)


async def test_a_client_in_the_same_loop_produces_and_consumes() -> None:
    async with open_cluster() as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic("t")
        async with client.producer() as producer:
            await (await producer.send("t", b"value", key=b"key")).wait()
        async with client.consumer("t", until_end=True) as consumer:
            assert [(record.key, record.value) async for record in consumer] == [(b"key", b"value")]


async def test_two_clusters_in_one_process_are_strangers() -> None:
    async with open_cluster() as one, open_cluster() as two:
        assert one.bootstrap != two.bootstrap
        async with open_client(one.bootstrap) as client:
            await client.admin.create_topic("only-in-one")
        async with open_client(two.bootstrap) as client:
            assert "only-in-one" not in [topic.name for topic in await client.admin.list_topics()]


def test_under_another_event_loop_it_says_what_to_use() -> None:
    async def open_one() -> None:
        async with open_cluster():
            pass

    with pytest.raises(RuntimeError, match="use open_blocking_cluster, or pytest's fixture"):
        asyncio.run(open_one())


async def test_a_restart_keeps_data_and_address() -> None:
    async with open_cluster() as cluster:
        before = cluster.bootstrap
        async with open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("kept")
        await cluster.restart()
        assert cluster.bootstrap == before
        async with open_client(cluster.bootstrap) as client:
            assert "kept" in [topic.name for topic in await client.admin.list_topics()]


async def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with open_cluster():
            raise KeyError("mine")


async def test_cancelling_the_block_stops_the_broker() -> None:
    with trio.CancelScope() as scope:
        async with open_cluster() as cluster:
            address, _, port = cluster.bootstrap.rpartition(":")
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    with pytest.raises(OSError, match="attempts to connect"):
        await trio.open_tcp_stream(address, int(port))


async def test_under_a_mock_clock_it_says_why_it_cannot_be(autojump_clock: MockClock) -> None:
    with pytest.raises(RuntimeError, match=r"needs real time.*do without autojump_clock"):
        async with open_cluster():
            pass


def test_a_broker_process_that_has_ended_by_itself_can_be_started_again(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data") as broker:
        os.kill(broker.pid, signal.SIGTERM)
        while broker.is_running:
            time.sleep(0.01)
        broker.start()
        assert broker.is_running


@pytest.mark.timeout(60)  # nothing else ends it where it fails
@pytest.mark.parametrize("seconds", [0, 0.01, 0.05])
async def test_a_cluster_that_is_cancelled_while_it_starts_ends(seconds: float) -> None:
    with trio.move_on_after(seconds) as scope:
        async with open_cluster(brokers=2):
            await trio.sleep_forever()
    assert scope.cancelled_caught


def test_ctrl_c_ends_the_blocking_twin_while_it_starts() -> None:
    """The interpreter waited for its thread, which nobody had told."""
    code = (
        "import threading\n"
        "from tidemark.testing import open_blocking_cluster\n"
        "print(flush=True)\n"
        "with open_blocking_cluster(brokers=3):\n"
        "    threading.Event().wait()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert error.rstrip().endswith(b"KeyboardInterrupt")


async def test_a_wrong_setting_is_refused_as_the_command_would() -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.setting"):
        async with open_cluster(settings={"no.such.setting": "1"}):
            pass


def test_the_blocking_twin_raises_in_the_callers_thread(tmp_path: Path) -> None:
    with (
        open_blocking_cluster(data_dir=tmp_path / "data"),
        pytest.raises(StorageError, match="used by another broker"),
        open_blocking_cluster(data_dir=tmp_path / "data"),
    ):
        pass


def test_the_pytest_fixture_serves_any_client(tidemark: BlockingCluster) -> None:
    producer = Producer({"bootstrap.servers": tidemark.bootstrap})
    producer.produce("t", b"value")
    assert producer.flush(10) == 0


def test_the_blocking_twin_restarts(tidemark: BlockingCluster) -> None:
    tidemark.restart()
    producer = Producer({"bootstrap.servers": tidemark.bootstrap})
    producer.produce("t", b"value")
    assert producer.flush(10) == 0
