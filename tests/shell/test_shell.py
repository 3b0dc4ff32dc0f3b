"""Seeds of the shell's layer keep every promise, and its judges notice what does not."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

import tidemark
from tidemark.broker.network.connections import Connections
from tidemark.client import ConsumerRecord
from tidemark.testing.shell.clients import Clients
from tidemark.testing.shell.disks import _DiskFile
from tidemark.testing.shell.run import run


@pytest.mark.parametrize("seeds", [("1", "4"), ("5", "8")])
def test_brokers_and_clients_keep_their_promises_under_seeded_faults(
    seeds: tuple[str, str],
) -> None:
    assert _run_seeds(*seeds).count("sent") == 4


def test_a_seed_does_the_same_each_time_in_any_process_and_any_folder(tmp_path: Path) -> None:
    """Byte for byte, for each piece is in the trace. A set of strings has another order with the
    hashes of each of these processes, and the second one has the code from elsewhere, not compiled
    yet."""
    code = tmp_path / "a clone of its own"
    shutil.copytree(
        Path(tidemark.__file__).parent,
        code / "tidemark",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    there = {"PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": ""}
    assert _run_seeds("324", PYTHONHASHSEED="3", **there) == _run_seeds("324", PYTHONHASHSEED="0")
    assert (code / "tidemark/testing/shell/__pycache__").exists(), "that was the code that ran"


def _run_seeds(*seeds: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.testing.shell", *seeds],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_thread_that_no_seed_decides_on_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_accepting = Connections.stop_accepting

    def begin_thread(connections: Connections) -> None:
        Thread(target=stop_accepting, args=(connections,)).start()

    monkeypatch.setattr(Connections, "stop_accepting", begin_thread)
    assert any("a Thread of its own" in each for each in run(9).found)


def test_a_record_that_is_not_there_any_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Clients._polled

    def forget(clients: Clients, name: str, record: ConsumerRecord) -> None:
        if record.offset % 10 != 3:
            polled(clients, name, record)

    monkeypatch.setattr(Clients, "_polled", forget)
    assert any("lost" in each for each in run(2).found)


def test_a_copy_that_was_given_up_and_is_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clients, "isolation", dict.fromkeys(Clients.isolation, "read_uncommitted"))
    assert any("G1a" in each for each in run(2).found)


def test_a_disk_that_only_says_that_it_has_synced_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_DiskFile, "sync", lambda file: None)
    monkeypatch.setattr(_DiskFile, "pwritev_synced", _DiskFile.pwritev)
    # What is left is drawn by what was written before: blocks of the journal, all of it, or a log's
    # end may be gone. One of some seeds loses what was acknowledged.
    found = (each for seed in (5, 6, 8, 11, 9) for each in run(seed).found)
    assert any("that had been acknowledged are lost" in each for each in found)


def test_a_descriptor_that_is_left_open_is_noticed(left_open: list[int]) -> None:
    assert any("descriptors were left open" in each for each in run(2).found)
    assert left_open


@pytest.fixture
def left_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A broker that forgets to close something."""
    descriptors = list[int]()
    close = Connections.close

    def leak(connections: Connections) -> None:
        descriptors.append(os.open(os.devnull, os.O_RDONLY))
        close(connections)

    monkeypatch.setattr(Connections, "close", leak)
    yield descriptors
    for each in descriptors:
        with suppress(OSError):
            os.close(each)


def test_an_error_that_ends_a_broker_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(connections: Connections, *_: object) -> None:
        raise OSError(errno.EPERM, "not today")

    monkeypatch.setattr(Connections, "stop_accepting", fail)
    assert any("not today" in each for each in run(9).found)
