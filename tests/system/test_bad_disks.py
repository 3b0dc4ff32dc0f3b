"""Disks that are full, or fail."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system.attacks import Peer, batch, metric, production
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.testing.process import open_broker_process


def mounted(folder: Path, size: str) -> bool:
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux" or os.geteuid() != 0:
        return False
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False
    )
    return done.returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    if not mounted(folder, "40m"):
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Take the rest of the disk."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_is_an_answer_and_room_on_it_an_end_of_that(small_disk: Path) -> None:
    with open_broker_process(small_disk / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t")
        assert peer.produce("t", batch(b"first")) is ErrorCode.NONE
        ballast = small_disk / "ballast"
        fill(ballast)
        count = 1
        while (code := peer.produce("t", batch(bytes(1000)))) is ErrorCode.NONE:
            count += 1
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        before = metric(broker, "tidemark_storage_errors_total")
        assert peer.produce("t", batch(bytes(100_000))) is ErrorCode.KAFKA_STORAGE_ERROR
        assert metric(broker, "tidemark_storage_errors_total") == before + 1
        assert peer.fetch("t").high_watermark == count
        assert peer.fetch_records("t")[0].value == b"first"
        # Longer than it takes for what is recorded now and then to meet the full disk.
        time.sleep(5.5)
        assert broker.is_running
        assert peer.fetch("t").high_watermark == count
        ballast.unlink()
        assert peer.produce("t", batch(b"again")) is ErrorCode.NONE
        assert [record.offset for record in peer.fetch_records("t")] == list(range(count + 1))
        broker.kill()
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch("t").high_watermark == count + 1


def test_a_broker_whose_journal_waits_for_room_stops_when_it_is_told_to(small_disk: Path) -> None:
    settings = {"stop.timeout.ms": "1000"}
    with (
        open_broker_process(small_disk / "data", settings=settings) as broker,
        Peer(broker.bootstrap) as peer,
    ):
        peer.create_topic("t")
        count = 0
        while not (small_disk / "data" / "journal" / "0001.journal").exists():
            assert peer.produce("t", batch(bytes(100_000))) is ErrorCode.NONE
            count += 1
        # A block of the journal takes a page of its own, and the log has room in its last page.
        ballast = small_disk / "ballast"
        fill(ballast)
        peer.socket.settimeout(3)
        with suppress(TimeoutError):
            while peer.produce("t", batch(b"small")) is ErrorCode.NONE:
                count += 1
        assert "the journal waits" in broker.log
        assert broker.stop(timeout_seconds=40) == 1
        assert "Traceback" not in broker.log
        assert "has not taken what was left" in broker.log
        ballast.unlink()
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch("t").high_watermark >= count


STRACE = shutil.which("strace")


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_a_failing_sync_ends_the_process_with_a_clear_line(tmp_path: Path) -> None:
    assert STRACE is not None
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t")
        assert peer.produce("t", batch(b"kept")) is ErrorCode.NONE
        inject = ["-f", "-q", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"]
        tracer = subprocess.Popen(
            [STRACE, *inject, "-p", str(broker.pid), "-o", str(tmp_path / "trace")]
        )
        try:
            time.sleep(0.5)
            peer.send(encode_request(production("t", batch(b"unknown")), 9, 7, None))
            assert peer.is_closed(), "no acknowledgement"
            assert broker.wait(timeout_seconds=10) == 1
        finally:
            tracer.send_signal(signal.SIGTERM)
            tracer.wait(10)
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "Input/output error" in line]
        assert "a sync of" in line
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch_records("t")[0].value == b"kept"
