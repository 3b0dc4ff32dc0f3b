"""A broker that is told to stop more than once."""

import signal
import time
from pathlib import Path
from socket import MSG_PEEK

import pytest

from tests.system.attacks import Peer, batch, fetching
from tests.system.serving import FREE_PORTS, SECONDS, running
from tidemark.cli.stop_signals import ECHO_SECONDS
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request


@pytest.mark.parametrize("gap_seconds", [0, 0.0005, 0.002, 0.01])
def test_a_signal_and_its_echo_are_one(tmp_path: Path, gap_seconds: float) -> None:
    with running(tmp_path, *FREE_PORTS) as (process, _):
        process.terminate()
        time.sleep(gap_seconds)
        process.terminate()
        _, log = process.communicate(timeout=SECONDS)
    # One that comes when all is done may still end the interpreter, which is at its end.
    assert "stopped" in log.splitlines()[-1]


def test_a_later_one_ends_it_at_once(tmp_path: Path) -> None:
    """Here while it waits for a client that does not read what it has asked for."""
    patient = ("--set", "stop.timeout.ms=60000")
    with (
        running(tmp_path, *FREE_PORTS, *patient) as (process, ready),
        Peer(f"127.0.0.1:{ready[2]}") as peer,
    ):
        peer.create_topic("t")
        for _ in range(20):
            assert peer.produce("t", batch(bytes(1_000_000))) is ErrorCode.NONE
        peer.send(encode_request(fetching("t", 0), 12, 7, "c"))
        assert peer.socket.recv(1, MSG_PEEK)
        process.terminate()
        time.sleep(2 * ECHO_SECONDS)
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGTERM
