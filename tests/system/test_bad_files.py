"""Files that hold something else than what was written."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.attacks import Peer, batch, bystander, metric
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import ErrorCode, TidemarkError
from tidemark.testing.process import BrokerDidNotStart, BrokerProcess, open_broker_process

VALUES = [bytes((65 + at,)) * 2000 for at in range(26)]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker with two topics of 26 batches has left when it stopped in order."""
    data_dir = tmp_path_factory.mktemp("written") / "data"
    with open_broker_process(data_dir) as broker:
        with Peer(broker.bootstrap) as peer:
            for topic in ("hurt", "whole"):
                peer.create_topic(topic)
                for value in VALUES:
                    assert peer.produce(topic, batch(value)) is ErrorCode.NONE
        assert broker.stop() == 0
    return data_dir


@pytest.fixture
def stopped(written: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that is not started yet, on a copy of what was written."""
    shutil.copytree(written, tmp_path / "data")
    broker = BrokerProcess(tmp_path / "data")
    yield broker
    if broker.is_running:
        broker.kill()


def segment(broker: BrokerProcess, topic: str = "hurt") -> Path:
    return broker.data_dir / f"{topic}-0" / f"{0:020}.log"


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes((byte ^ 0x10,)))


def all_values(peer: Peer, topic: str) -> list[bytes | None]:
    return [record.value for record in peer.fetch_records(topic)]


def verify(broker: BrokerProcess, topic: str) -> subprocess.CompletedProcess[str]:
    directory = str(broker.data_dir / f"{topic}-0")
    return subprocess.run(
        [sys.executable, "-m", "tidemark.cli.main", "log", "verify", directory],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


BATCH_BYTES = len(batch(VALUES[0]))


@pytest.mark.parametrize("at", [9, 500], ids=["in a length", "in a value"])
def test_a_flipped_bit_is_named_by_verify_and_never_cut_away(
    stopped: BrokerProcess, at: int
) -> None:
    """A start after a clean stop trusts what was synced, and does not read it."""
    flip(segment(stopped), 12 * BATCH_BYTES + at)
    size = segment(stopped).stat().st_size
    shown = verify(stopped, "hurt")
    assert shown.returncode != 0
    assert str(12 * BATCH_BYTES) in shown.stdout + shown.stderr
    assert verify(stopped, "whole").returncode == 0
    stopped.start()
    with Peer(stopped.bootstrap) as peer:
        assert all_values(peer, "whole") == VALUES
        assert peer.produce("whole", batch(b"more")) is ErrorCode.NONE
    with (
        open_client(stopped.bootstrap) as client,
        client.consumer("hurt", until_end=True) as consumer,
        pytest.raises(TidemarkError),
    ):
        list(consumer)
    assert segment(stopped).stat().st_size == size


def test_a_log_whose_batches_do_not_join_is_an_error_to_who_reads_there(
    stopped: BrokerProcess,
) -> None:
    flip(segment(stopped), 12 * BATCH_BYTES + 9)
    stopped.start()
    with Peer(stopped.bootstrap) as peer:
        codes = {at: peer.fetch("hurt", at).error_code for at in range(len(VALUES))}
        assert set(codes.values()) == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        assert codes[13] == ErrorCode.KAFKA_STORAGE_ERROR
        assert all_values(peer, "whole") == VALUES
        assert metric(stopped, "tidemark_storage_errors_total") >= 1
    assert str(segment(stopped)) in stopped.log


def test_a_flipped_bit_in_what_recovery_reads_keeps_the_partition_from_being_served(
    stopped: BrokerProcess,
) -> None:
    """Without a clean stop's indexes and snapshot, a start reads the whole segment."""
    flip(segment(stopped), 12 * BATCH_BYTES + 9)
    for path in segment(stopped).parent.iterdir():
        if path.suffix != ".log":
            path.unlink()
    stopped.start()
    with Peer(stopped.bootstrap) as peer, bystander(stopped.bootstrap, "other"):
        assert peer.fetch("hurt").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert peer.produce("hurt", batch(b"more")) is ErrorCode.KAFKA_STORAGE_ERROR
        assert all_values(peer, "whole") == VALUES
        assert metric(stopped, "tidemark_storage_errors_total") >= 1
    assert "hurt-0 is not served" in stopped.log
    assert str(segment(stopped)) in stopped.log


@pytest.mark.parametrize("damage", ["missing", "garbage", "empty", "another's"])
def test_index_files_are_only_a_shortcut(stopped: BrokerProcess, damage: str) -> None:
    other = segment(stopped, "whole").parent
    for path in segment(stopped).parent.iterdir():
        if path.suffix == ".log":
            continue
        match damage:
            case "missing":
                path.unlink()
            case "garbage":
                path.write_bytes(os.urandom(240))
            case "empty":
                path.write_bytes(b"")
            case _:
                path.write_bytes((other / path.name).read_bytes() * 3)
    stopped.start()
    with Peer(stopped.bootstrap) as peer:
        assert all_values(peer, "hurt") == VALUES
        assert peer.fetch_records("hurt", 20)[0].value == VALUES[20]
        assert peer.produce("hurt", batch(b"more")) is ErrorCode.NONE
        assert peer.fetch("hurt").high_watermark == 27


def test_a_torn_tail_is_cut_and_the_log_goes_on(stopped: BrokerProcess) -> None:
    with segment(stopped).open("ab") as file:
        file.write(batch(b"half of this")[:40])
    stopped.start()
    with Peer(stopped.bootstrap) as peer:
        assert peer.produce("hurt", batch(b"more")) is ErrorCode.NONE
        assert all_values(peer, "hurt") == [*VALUES, b"more"]
    assert "cut 40 bytes that a crash had left unfinished" in stopped.log


@pytest.mark.parametrize(
    "damage", ["garbage", "another database", "a folder", "empty", "it is gone"]
)
def test_a_state_db_that_is_none_is_refused_in_one_line(
    stopped: BrokerProcess, damage: str
) -> None:
    state = stopped.data_dir / "state.db"
    for path in stopped.data_dir.glob("state.db*"):
        path.unlink()
    match damage:
        case "garbage":
            state.write_bytes(os.urandom(50_000))
        case "another database":
            with sqlite3.connect(state) as database:
                database.execute("CREATE TABLE t (x)")
        case "a folder":
            state.mkdir()
        case "empty":
            state.touch()
        case _:
            assert not state.exists()
    before = len(stopped.log)
    with pytest.raises(BrokerDidNotStart):
        stopped.start()
    (line,) = stopped.log[before:].splitlines()
    assert "state.db" in line
    assert all(path.stat().st_size for path in stopped.data_dir.glob("*-0/*.log"))
