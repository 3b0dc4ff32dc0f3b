"""A broker has filled its disk: it refuses records, and its own tools make room."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.attacks import Peer, batch, metric
from tests.system.small_disks import fill, small_disk, wait_reserved, wait_taken
from tidemark.protocol.errors import ErrorCode
from tidemark.testing.process import BrokerDidNotStart, BrokerProcess, open_broker_process


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A disk with nothing on it but the data directory. Each record is in the journal, too."""
    with small_disk(tmp_path / "small", "96m") as folder:
        yield folder


def tidemark(broker: BrokerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidemark.cli.main", "--bootstrap", broker.bootstrap]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def produce_until_refused(peer: Peer) -> int:
    """To `big` until it takes no more; how many records `kept` took beside it."""
    kept = count = 0
    while (code := peer.produce("big", batch(bytes(100_000)))) is ErrorCode.NONE:
        count += 1
        if count % 10 == 0 and peer.produce("kept", batch(b"%d" % kept)) is ErrorCode.NONE:
            kept += 1
    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    return kept


def check_kept(peer: Peer, count: int) -> None:
    values = [record.value for record in peer.fetch_records("kept")]
    assert values == [b"%d" % number for number in range(count)]


def test_a_topic_that_is_deleted_makes_room_on_a_disk_without_a_free_byte(data: Path) -> None:
    with open_broker_process(data) as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("kept")
        peer.create_topic("big")
        wait_reserved(data)
        kept = produce_until_refused(peer)
        assert metric(broker, "tidemark_data_dir_full") == 1
        fill(data / "ballast")
        status = tidemark(broker, "cluster", "status")
        assert status.returncode == 3
        assert "1 of 1 brokers with a full disk" in status.stdout
        assert "disk full: refuses records" in status.stdout
        check_kept(peer, kept)
        deleted = tidemark(broker, "topic", "delete", "big")
        assert (deleted.returncode, deleted.stderr) == (0, "")
        wait_taken(peer, "kept", batch(b"%d" % kept))
        check_kept(peer, kept + 1)
        wait_reserved(data)
        assert metric(broker, "tidemark_data_dir_full") == 0
        assert tidemark(broker, "cluster", "status").returncode == 0
        broker.kill()
        broker.start()
        with Peer(broker.bootstrap) as after:
            check_kept(after, kept + 1)


def test_a_shorter_retention_makes_room(data: Path) -> None:
    with open_broker_process(data) as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("kept")
        peer.create_topic("big", segment_bytes="4000000")
        wait_reserved(data)
        kept = produce_until_refused(peer)
        fill(data / "ballast")
        done = tidemark(broker, "topic", "alter", "big", "--config", "retention.bytes=8000000")
        assert (done.returncode, done.stderr) == (0, "")
        wait_taken(peer, "big", batch(b"again"))
        assert peer.fetch("big").log_start_offset > 0
        check_kept(peer, kept)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_broker_starts_on_a_disk_without_a_free_byte(data: Path, is_killed: bool) -> None:
    with open_broker_process(data) as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("kept")
        peer.create_topic("big")
        wait_reserved(data)
        kept = produce_until_refused(peer)
        fill(data / "ballast")
        if is_killed:
            broker.kill()
        else:
            assert broker.stop(timeout_seconds=40) == 0
        fill(data / "ballast")
        broker.start()
        assert "the disk of" in broker.log
        with Peer(broker.bootstrap) as after:
            check_kept(after, kept)
            assert after.produce("kept", batch(b"no")) is ErrorCode.KAFKA_STORAGE_ERROR
            assert tidemark(broker, "topic", "delete", "big").returncode == 0
            wait_taken(after, "kept", batch(b"%d" % kept))
            check_kept(after, kept + 1)


def test_a_start_without_any_room_says_what_to_do(data: Path) -> None:
    with open_broker_process(data) as broker:
        with Peer(broker.bootstrap) as peer:
            peer.create_topic("kept")
            assert peer.produce("kept", batch(b"0")) is ErrorCode.NONE
        assert broker.stop(timeout_seconds=40) == 0
        (data / "reserve").unlink(missing_ok=True)
        fill(data / "ballast")
        with pytest.raises(BrokerDidNotStart, match="0 bytes are free, and a start needs some"):
            broker.start()
        assert "Traceback" not in broker.log
        (data / "ballast").unlink()
        broker.start()
        with Peer(broker.bootstrap) as after:
            check_kept(after, 1)
