"""The command, run inside the test process, against the broker that all tests share."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tidemark.cli.main import run

if TYPE_CHECKING:
    from tidemark.testing import BlockingCluster

_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command did."""

    status: int
    out: bytes
    err: str


Command = Callable[..., Result]


@pytest.fixture
def command(
    tidemark_session: "BlockingCluster",
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Command:
    """Runs one command line, with `stdin` as its standard input."""
    monkeypatch.setenv("TIDEMARK_BOOTSTRAP", tidemark_session.bootstrap)

    def invoke(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(arguments)
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Result(status=status, out=captured.out, err=captured.err.decode())

    return invoke


@pytest.fixture
def name() -> str:
    """A name, for a topic or a group, that no other test uses."""
    return f"t{next(_numbers):04}"
