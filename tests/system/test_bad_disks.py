"""Disks that are full, or fail."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from tests.system.attacks import Peer, batch, creation, production
from tests.system.small_disks import fill, small_disk, wait_reserved, wait_taken
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages import create_topics
from tidemark.testing.process import BrokerProcess, open_broker_process


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "40m") as folder:
        yield folder


def cut_unwritten(journal: Path) -> None:
    """Leave a file of the journal what was written to it: each block begins a page."""
    pages = range(journal.stat().st_size // PAGE_BYTES)
    with journal.open("rb") as file:
        written = sum(any(file.read(PAGE_BYTES)) for _ in pages)
    os.truncate(journal, written * PAGE_BYTES)


def test_a_full_disk_is_an_answer_and_room_on_it_an_end_of_that(small: Path) -> None:
    with open_broker_process(small / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t")
        assert peer.produce("t", batch(b"first")) is ErrorCode.NONE
        ballast = small / "ballast"
        fill(ballast)
        count = 1
        while (code := peer.produce("t", batch(bytes(1000)))) is ErrorCode.NONE:
            count += 1
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        assert peer.produce("t", batch(bytes(100_000))) is ErrorCode.KAFKA_STORAGE_ERROR
        assert peer.fetch("t").high_watermark == count
        assert peer.fetch_records("t")[0].value == b"first"
        # Longer than it takes for what is recorded now and then to meet the full disk.
        time.sleep(5.5)
        assert broker.is_running
        assert peer.fetch("t").high_watermark == count
        ballast.unlink()
        wait_taken(peer, "t", batch(b"again"))
        assert [record.offset for record in peer.fetch_records("t")] == list(range(count + 1))
        broker.kill()
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch("t").high_watermark == count + 1


def test_a_broker_whose_journal_waits_for_room_stops_when_it_is_told_to(small: Path) -> None:
    settings = {"stop.timeout.ms": "1000"}
    with (
        open_broker_process(small / "data", settings=settings) as broker,
        Peer(broker.bootstrap) as peer,
    ):
        peer.create_topic("t")
        count = 20
        for _ in range(count):
            assert peer.produce("t", batch(bytes(1000))) is ErrorCode.NONE
        # Somebody has taken the reserve, and what the journal was to be written over. The log of
        # the metadata has room in its last page.
        wait_reserved(small / "data")
        os.truncate(small / "data" / "reserve", 0)
        cut_unwritten(small / "data" / "journal" / "0000.journal")
        ballast = small / "ballast"
        fill(ballast)
        peer.socket.settimeout(3)
        with suppress(TimeoutError):
            for number in range(100):
                peer.ask(creation(f"more-{number}"), 5, create_topics.CreateTopicsResponse)
        assert "the journal waits" in broker.log
        assert broker.stop(timeout_seconds=40) == 1
        assert "Traceback" not in broker.log
        assert "has not taken what was left" in broker.log
        ballast.unlink()
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch("t").high_watermark >= count


STRACE = shutil.which("strace")


def failing_syncs(broker: BrokerProcess, folder: Path) -> AbstractContextManager[None]:
    """The broker's syncs fail in this block."""
    return failing(broker, folder, "fdatasync,pwritev2")


@contextmanager
def failing(
    broker: BrokerProcess, folder: Path, calls: str, *, of: Path | None = None
) -> Iterator[None]:
    """The broker's system calls of these names fail in this block; those for a file, if given."""
    assert STRACE is not None
    inject = ["-f", "-q", "-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO"]
    if of is not None:
        inject += ["-P", str(of)]
    tracer = subprocess.Popen([STRACE, *inject, "-p", str(broker.pid), "-o", str(folder / "trace")])
    try:
        time.sleep(0.5)
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)
        tracer.wait(10)


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_a_failing_sync_ends_the_process_with_a_clear_line(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t")
        assert peer.produce("t", batch(b"kept")) is ErrorCode.NONE
        with failing_syncs(broker, tmp_path):
            peer.send(encode_request(production("t", batch(b"unknown")), 9, 7, None))
            assert peer.is_closed(), "no acknowledgement"
            assert broker.wait(timeout_seconds=10) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "Input/output error" in line]
        assert "a sync of" in line
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert after.fetch_records("t")[0].value == b"kept"


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_a_failing_sync_of_state_db_ends_the_process_too(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        recorded = tmp_path / "data" / "state.db-wal"
        with failing(broker, tmp_path, "fdatasync,fsync", of=recorded):
            peer.send(encode_request(creation("t"), 5, 7, None))
            assert broker.wait(timeout_seconds=20) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "has stopped" in line]
        assert "a sync of" in line
        assert "state.db'" in line
        broker.start()
        with Peer(broker.bootstrap) as after:
            after.create_topic("other")
            assert after.produce("other", batch(b"taken")) is ErrorCode.NONE


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
def test_a_failing_write_of_state_db_ends_the_process_too(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        recorded = tmp_path / "data" / "state.db-wal"
        with failing(broker, tmp_path, "pwrite64", of=recorded):
            peer.send(encode_request(creation("t"), 5, 7, None))
            assert broker.wait(timeout_seconds=20) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "has stopped" in line]
        assert "Input/output error" in line
        assert "state.db'" in line
        broker.start()
        with Peer(broker.bootstrap) as after:
            after.create_topic("other")
            assert after.produce("other", batch(b"taken")) is ErrorCode.NONE


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
def test_a_state_db_that_takes_nothing_of_its_long_log_ends_the_process_too(
    tmp_path: Path,
) -> None:
    """SQLite goes on for ever, and its log grows."""
    with open_broker_process(tmp_path / "data") as broker:
        assert broker.stop() == 0
        state = tmp_path / "data" / "state.db"
        # As if it had not been copied before.
        grows = (
            "import os, sqlite3, sys\n"
            "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "db.execute('PRAGMA wal_autocheckpoint = 0')\n"
            "db.execute('REPLACE INTO meta VALUES (?, ?)', ('long', '7' * 9_000_000))\n"
            "os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", grows, str(state)], check=True)
        broker.start()
        with Peer(broker.bootstrap) as peer, failing(broker, tmp_path, "pwrite64", of=state):
            peer.create_topic("t", segment_bytes="10000")
            with suppress(EOFError, OSError):
                for _ in range(200):  # each second one has a checkpoint save a segment
                    peer.produce("t", batch(bytes(6000)))
                    time.sleep(0.02)
            assert broker.wait(timeout_seconds=20) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "has stopped" in line]
        assert "Input/output error" in line
        assert "state.db'" in line
        broker.start()


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
def test_a_log_that_cannot_be_written_to_ends_the_process_at_once(tmp_path: Path) -> None:
    """Else it would lead, and refuse all that comes, until a checkpoint finds out."""
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t")
        assert peer.produce("t", batch(b"kept")) is ErrorCode.NONE
        segment = tmp_path / "data" / "t-0" / f"{0:020d}.log"
        with failing(broker, tmp_path, "pwrite64,pwritev", of=segment):
            peer.send(encode_request(production("t", batch(b"refused")), 9, 7, None))
            assert broker.wait(timeout_seconds=10) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "has stopped" in line]
        assert "Input/output error" in line
        broker.start()
        with Peer(broker.bootstrap) as after:
            assert [record.value for record in after.fetch_records("t")] == [b"kept"]


def test_a_directory_that_somebody_removes_ends_the_process_with_its_name(tmp_path: Path) -> None:
    """As Kafka's does with its only log directory: what is open takes every write, and is lost."""
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t", **{"segment.bytes": "2048"})
        assert peer.produce("t", batch(bytes(1000))) is ErrorCode.NONE
        shutil.rmtree(tmp_path / "data" / "t-0")
        with suppress(OSError):
            while peer.produce("t", batch(bytes(1000))) is ErrorCode.NONE:
                pass
        assert broker.wait(timeout_seconds=10) == 1
        assert "Traceback" not in broker.log
        (line,) = [line for line in broker.log.splitlines() if "is gone" in line]
        assert "data/t-0/" in line
        assert "somebody has removed files" in line
        broker.start()
        wait_said(broker, "t-0 is not served")


def wait_said(broker: BrokerProcess, what: str) -> None:
    deadline = time.monotonic() + 20
    while what not in broker.log:
        assert time.monotonic() < deadline, broker.log
        time.sleep(0.1)


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_what_is_in_the_page_cache_only_counts_no_more_after_a_sync_that_failed(
    tmp_path: Path,
) -> None:
    """The kernel may drop it while the machine goes on. A replica that had no more what it had
    acknowledged, and took itself for clean, could outvote the one that had it."""
    lossy = "records may be gone, of t-0"
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.create_topic("t", flush="os")
        assert peer.produce("t", batch(b"kept")) is ErrorCode.NONE
        broker.kill()
        broker.start()
        with Peer(broker.bootstrap) as other, failing_syncs(broker, tmp_path):
            with suppress(OSError):  # one of its own, of a checkpoint say, may have failed already
                other.send(encode_request(creation("other"), 5, 7, None))
            assert broker.wait(timeout_seconds=10) == 1
        assert lossy not in broker.log, "a process that was killed leaves the page cache"
        broker.start()
        wait_said(broker, lossy)
        with Peer(broker.bootstrap) as after:
            assert after.fetch_records("t")[0].value == b"kept"
