"""What the command says, and does, where neither epoll nor fcntl is there, as on Windows."""

import os
import subprocess
import sys
from typing import Final

import pytest

from tidemark.testing import BlockingCluster

WITHOUT: Final = """
import select, sys, types
from trio._core import _io_epoll

for name in ("fcntl", "resource", "termios", "pwd"):
    sys.modules[name] = None
_io_epoll.select = types.SimpleNamespace(**vars(select))  # trio itself is on Linux here
del select.epoll

from tidemark.cli.main import run

sys.exit(run(sys.argv[1:]))
"""


def tidemark(
    *arguments: str, bootstrap: str = "", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        env=os.environ | {"TIDEMARK_BOOTSTRAP": bootstrap},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [["serve"], ["demo"], ["sim", "--seeds", "1"], ["log", "dump", "."], ["log", "verify", "."]],
)
def test_what_needs_a_broker_s_system_says_so(arguments: list[str]) -> None:
    done = tidemark(*arguments)
    assert done.stderr.startswith("tidemark: brokers run on Linux only")
    assert done.stderr.count("\n") == 1
    assert (done.stdout, done.returncode) == ("", 1)


def test_what_asks_brokers_goes_on(tidemark_session: BlockingCluster) -> None:
    where, topic = tidemark_session.bootstrap, "from-another-system"
    assert tidemark("topic", "create", topic, bootstrap=where).returncode == 0
    assert topic in tidemark("topic", "list", bootstrap=where).stdout
    assert tidemark("produce", topic, bootstrap=where, stdin="one\n").returncode == 0
    read = tidemark("consume", topic, "--from", "beginning", "--exit", bootstrap=where)
    assert (read.stdout, read.returncode) == ("one\n", 0)
