"""The `tidemark` command, as a shell script uses it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forkserver import open_forkserver
from tests.clients.samples import CODECS, COMPRESSIBLE
from tidemark.testing.process import BrokerProcess


class Shell:
    """Runs the command against a broker, each time in a process of its own."""

    def __init__(self, command: Path, bootstrap: str) -> None:
        self._command = [str(command), "--bootstrap", bootstrap]

    def run(self, *arguments: str, stdin: bytes = b"", status: int = 0) -> bytes:
        """What it prints; on standard error, where `status`, its exit status, has to be not 0."""
        command = [*self._command, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        assert done.returncode == status, done.stderr.decode()
        return done.stdout if status == 0 else done.stderr

    def described(self, *arguments: str) -> Any:  # Any: what JSON holds
        return json.loads(self.run(*arguments, "-o", "json"))

    def consume(self, topic: str, *arguments: str) -> bytes:
        return self.run("consume", topic, "--exit", *arguments)


@pytest.fixture(scope="module")
def command() -> Iterator[Path]:
    with open_forkserver() as command:
        yield command


@pytest.fixture
def shell(command: Path, bootstrap: str) -> Shell:
    return Shell(command, bootstrap)


def test_topics(shell: Shell, topic: str) -> None:
    shell.run("topic", "create", topic, "--partitions", "3")
    shell.run("topic", "add-partitions", topic, "--total", "5")
    assert len(shell.described("topic", "describe", topic)["partitions"]) == 5
    refused = shell.run("topic", "create", topic, status=1)
    assert b"TOPIC_ALREADY_EXISTS" in refused
    assert refused.count(b"\n") == 1
    shell.run("topic", "delete", topic)
    assert topic not in [row["name"] for row in shell.described("topic", "list")]


def test_configs(shell: Shell, topic: str) -> None:
    shell.run("topic", "create", topic, "-c", "retention.ms=1000000")
    shell.run("topic", "alter", topic, "-c", "flush=os")
    shown = shell.run("topic", "describe", topic).decode()
    assert "1000000" in shown
    assert "page cache" in shown


def test_produce_and_consume(shell: Shell, topic: str) -> None:
    records: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}], "partition": 0},
        {"key": None, "value": "no key", "partition": 0},
        {"key": "tombstone", "value": None, "partition": 0},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    shell.run("produce", topic, "--json", stdin=lines)
    got = [json.loads(line) for line in shell.consume(topic, "--json").splitlines()]
    assert [record["offset"] for record in got] == [0, 1, 2]
    assert [(record["key"], record["value"]) for record in got] == [
        (record["key"], record["value"]) for record in records
    ]
    again = "".join(json.dumps(record) + "\n" for record in got).encode()
    shell.run("produce", f"{topic}-copy", "--json", stdin=again)
    copied = [json.loads(line) for line in shell.consume(f"{topic}-copy", "--json").splitlines()]
    assert [{**record, "topic": topic} for record in copied] == got


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(shell: Shell, topic: str, acks: str) -> None:
    shell.run("produce", topic, "-p", "0", "--acks", acks, stdin=b"a\nb\n")
    assert shell.consume(topic, "--max", "2") == b"a\nb\n"


@pytest.mark.parametrize("codec", CODECS)
def test_compression(shell: Shell, topic: str, codec: str) -> None:
    data = b"\n".join(COMPRESSIBLE) + b"\n"
    shell.run("produce", topic, "-p", "0", "--compression", codec, stdin=data)
    assert shell.consume(topic) == data


def test_offsets_by_time(shell: Shell, topic: str) -> None:
    lines = b"".join(
        b'{"value": "%d", "partition": 0, "timestamp": %d}\n' % (number, 1_700_000_000_000 + number)
        for number in range(10)
    )
    shell.run("produce", topic, "--json", stdin=lines)
    assert shell.consume(topic, "--from", "@1700000000007") == b"7\n8\n9\n"
    assert shell.consume(topic, "-p", "0", "--from", "-2") == b"8\n9\n"


def test_commits_survive_a_restart(
    command: Path, own_broker: BrokerProcess, topic: str, group: str
) -> None:
    shell = Shell(command, own_broker.bootstrap)
    shell.run("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    first = shell.run("consume", topic, "--group", group, "--max", "2")
    assert first == b"a\nb\n"
    own_broker.kill()
    own_broker.start()
    rest = shell.run("consume", topic, "--group", group, "--max", "1")
    assert rest == b"c\n"


def test_automatic_topic(shell: Shell, topic: str) -> None:
    shell.run("produce", topic, stdin=b"first use\n")
    assert shell.consume(topic) == b"first use\n"


def test_delete_records(shell: Shell, topic: str) -> None:
    shell.run("topic", "create", topic, "--partitions", "1")
    for value in (b"a\n", b"b\n", b"c\n"):
        shell.run("produce", topic, stdin=value)
    shell.run("topic", "trim", topic, "--yes", "--before", "2")
    assert shell.consume(topic) == b"c\n"


def test_record_too_large(shell: Shell, topic: str) -> None:
    shell.run("topic", "create", topic, "-c", "max.message.bytes=1000")
    refused = shell.run("produce", topic, stdin=b"x" * 5000, status=1)
    assert b"MESSAGE_TOO_LARGE" in refused
    assert refused.count(b"\n") == 1


def test_group_admin(shell: Shell, topic: str, group: str) -> None:
    shell.run("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    shell.run("consume", topic, "--group", group, "--max", "2")
    assert group in [row["group"] for row in shell.described("group", "list")]
    shown = shell.run("group", "describe", group).decode()
    assert topic in shown
    shell.run("group", "reset", group, "--to", "beginning", "--yes")
    again = shell.run("consume", topic, "--group", group, "--max", "3")
    assert again == b"a\nb\nc\n"
    shell.run("group", "delete", group)
    assert group not in [row["group"] for row in shell.described("group", "list")]
