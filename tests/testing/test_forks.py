"""A process that is forked while brokers run gets nothing of theirs, and takes nothing along."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tidemark.testing import BlockingCluster, open_blocking_cluster

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"  # Python 3.12's, of any fork here
)


@contextmanager
def child(act: Callable[[], object]) -> Iterator[None]:
    """A forked process that says what became of `act`, and then lives as long as the block."""
    its_end, our_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            our_end.close()
            try:
                said = repr(act())
            except BaseException as error:
                said = repr(error)
            its_end.sendall(said.encode() + b"\n")
            its_end.recv(1)
        os._exit(0)
    its_end.close()
    try:
        with our_end, our_end.makefile() as answers:
            assert answers.readline() == "'here'\n"
            yield
    finally:
        assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture
def pair() -> Iterator[BlockingCluster]:
    with open_blocking_cluster(brokers=2) as cluster:
        yield cluster


def test_a_broker_ends_and_starts_again_while_a_child_lives(pair: BlockingCluster) -> None:
    host, port = pair.bootstrap_of(1).split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        with child(lambda: "here"):
            pair.kill(1)
            assert client.recv(1) == b""
            pair.start(1)
            pair.wait_caught_up()
        # The child has ended, and that took nothing away.
        pair.restart()
        pair.wait_caught_up()


def test_a_child_that_asks_is_told_that_the_brokers_are_elsewhere(
    tidemark: BlockingCluster,
) -> None:
    def ask() -> str:
        with pytest.raises(RuntimeError, match="do not outlive a fork"):
            tidemark.stop()
        with pytest.raises(RuntimeError, match="do not outlive a fork"):
            tidemark.leader_of("tides")
        return "here"

    with child(ask):
        assert tidemark.controller == 1


PROGRAM = """
import os, sys
from tidemark.testing import open_blocking_cluster

with open_blocking_cluster() as cluster:
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert cluster.data_dir.exists()
    cluster.restart(1)
assert not cluster.data_dir.exists()
"""


def test_a_child_that_ends_in_the_block_leaves_the_data_there() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
