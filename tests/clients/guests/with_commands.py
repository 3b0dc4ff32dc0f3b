"""kcat and the `tidemark` command: each value is a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from tests.clients.guests import PASSWORD, REFUSALS, Library, Login, Receive, Refused, Send
from tidemark.protocol.errors import ErrorCode

_KCAT_SAYS: Final = {
    b"Topic authorization failed": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    # It prints the broker's own words, where there are any.
    b"FindCoordinator response error: User:alice from": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    b"Group authorization failed": ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
_TIDEMARK_SAYS: Final = {code.name.encode(): code for code in REFUSALS}


def _run(command: Sequence[str], says: Mapping[bytes, ErrorCode], stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=30, check=False)
    if done.returncode == 0:
        return done.stdout
    for words, code in says.items():
        if words in done.stderr:
            raise Refused(code)
    raise AssertionError(done.stderr.decode())


def tidemark(login: Login, *arguments: str, stdin: bytes = b"") -> bytes:
    command = [sys.executable, "-m", "tidemark.cli.entry"]
    return _run([*command, *_options(login), *arguments], _TIDEMARK_SAYS, stdin)


def _options(login: Login) -> list[str]:
    options = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",  # kcat's librdkafka is refused with SCRAM: librdkafka#4895.
        "sasl.username": login.user,
        "sasl.password": PASSWORD,
    }
    return [word for name, value in options.items() for word in ("-X", f"{name}={value}")]


@contextmanager
def tidemark_writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    del is_idempotent  # It always is, with acks=all.
    yield lambda value: _nothing(tidemark(login, "produce", topic, stdin=value))


@contextmanager
def tidemark_reading(login: Login, topic: str, group: str) -> Iterator[Receive]:
    yield lambda: tidemark(login, "consume", topic, "--group", group, "--max", "1").rstrip(b"\n")


def _nothing(printed: bytes) -> None:
    assert printed == b""


def _kcat(login: Login, *arguments: str, stdin: bytes = b"") -> bytes:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    command = ["kcat", "-X", "broker.address.family=v4", *_options(login), *arguments]
    return _run(command, _KCAT_SAYS, stdin)


@contextmanager
def kcat_writing(login: Login, topic: str, *, is_idempotent: bool = False) -> Iterator[Send]:
    options = ["-X", f"enable.idempotence={str(is_idempotent).lower()}"]
    yield lambda value: _nothing(_kcat(login, *options, "-P", "-t", topic, stdin=value))


@contextmanager
def kcat_reading(login: Login, topic: str, group: str) -> Iterator[Receive]:
    options = ["-X", "auto.offset.reset=earliest", "-c", "1", "-q"]
    yield lambda: _kcat(login, "-G", group, *options, topic).rstrip(b"\n")


TIDEMARK: Final = Library(writing=tidemark_writing, reading=tidemark_reading)
KCAT: Final = Library(writing=kcat_writing, reading=kcat_reading)
