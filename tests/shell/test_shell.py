"""Seeds of the shell's layer keep every promise, and its judges notice what does not."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tidemark.broker.network.connections import Connections
from tidemark.client import ConsumerRecord
from tidemark.testing.shell.clients import Clients
from tidemark.testing.shell.run import run


@pytest.mark.parametrize("seeds", [("1", "4"), ("5", "8")])
def test_brokers_and_clients_keep_their_promises_under_seeded_faults(
    seeds: tuple[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.testing.shell", *seeds],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("sent") == 4


def test_a_record_that_is_not_there_any_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Clients._polled

    def forget(clients: Clients, name: str, record: ConsumerRecord) -> None:
        if record.offset % 10 != 3:
            polled(clients, name, record)

    monkeypatch.setattr(Clients, "_polled", forget)
    assert any("lost" in each for each in run(2).found)


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
