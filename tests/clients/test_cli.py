"""The `tidemark` command, as a shell script uses it."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.clients.samples import CODECS, COMPRESSIBLE
from tidemark.testing.process import BrokerProcess


def tidemark(bootstrap: str, *arguments: str, stdin: bytes = b"", status: int = 0) -> bytes:
    """Run the command; its standard output. The exit status has to be `status`."""
    command = [sys.executable, "-m", "tidemark.cli.main", "--bootstrap", bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout if status == 0 else done.stderr


def described(bootstrap: str, *arguments: str) -> Any:  # Any: what JSON holds
    return json.loads(tidemark(bootstrap, *arguments, "-o", "json"))


def consume(bootstrap: str, topic: str, *arguments: str) -> bytes:
    return tidemark(bootstrap, "consume", topic, "--exit", *arguments)


def test_topics(bootstrap: str, topic: str) -> None:
    tidemark(bootstrap, "topic", "create", topic, "--partitions", "3")
    tidemark(bootstrap, "topic", "add-partitions", topic, "--total", "5")
    assert len(described(bootstrap, "topic", "describe", topic)["partitions"]) == 5
    refused = tidemark(bootstrap, "topic", "create", topic, status=1)
    assert b"TOPIC_ALREADY_EXISTS" in refused
    assert refused.count(b"\n") == 1
    tidemark(bootstrap, "topic", "delete", topic)
    assert topic not in [row["name"] for row in described(bootstrap, "topic", "list")]


def test_configs(bootstrap: str, topic: str) -> None:
    tidemark(bootstrap, "topic", "create", topic, "-c", "retention.ms=1000000")
    tidemark(bootstrap, "topic", "alter", topic, "-c", "flush=os")
    shown = tidemark(bootstrap, "topic", "describe", topic).decode()
    assert "1000000" in shown
    assert "page cache" in shown


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    records: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}], "partition": 0},
        {"key": None, "value": "no key", "partition": 0},
        {"key": "tombstone", "value": None, "partition": 0},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    tidemark(bootstrap, "produce", topic, "--json", stdin=lines)
    got = [json.loads(line) for line in consume(bootstrap, topic, "--json").splitlines()]
    assert [record["offset"] for record in got] == [0, 1, 2]
    assert [(record["key"], record["value"]) for record in got] == [
        (record["key"], record["value"]) for record in records
    ]
    again = "".join(json.dumps(record) + "\n" for record in got).encode()
    tidemark(bootstrap, "produce", f"{topic}-copy", "--json", stdin=again)
    copied = [
        json.loads(line) for line in consume(bootstrap, f"{topic}-copy", "--json").splitlines()
    ]
    assert [{**record, "topic": topic} for record in copied] == got


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap: str, topic: str, acks: str) -> None:
    tidemark(bootstrap, "produce", topic, "-p", "0", "--acks", acks, stdin=b"a\nb\n")
    assert consume(bootstrap, topic, "--max", "2") == b"a\nb\n"


@pytest.mark.parametrize("codec", CODECS)
def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    data = b"\n".join(COMPRESSIBLE) + b"\n"
    tidemark(bootstrap, "produce", topic, "-p", "0", "--compression", codec, stdin=data)
    assert consume(bootstrap, topic) == data


def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    lines = b"".join(
        b'{"value": "%d", "partition": 0, "timestamp": %d}\n' % (number, 1_700_000_000_000 + number)
        for number in range(10)
    )
    tidemark(bootstrap, "produce", topic, "--json", stdin=lines)
    assert consume(bootstrap, topic, "--from", "@1700000000007") == b"7\n8\n9\n"
    assert consume(bootstrap, topic, "-p", "0", "--from", "-2") == b"8\n9\n"


def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    tidemark(own_broker.bootstrap, "produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    first = tidemark(own_broker.bootstrap, "consume", topic, "--group", group, "--max", "2")
    assert first == b"a\nb\n"
    own_broker.kill()
    own_broker.start()
    rest = tidemark(own_broker.bootstrap, "consume", topic, "--group", group, "--max", "1")
    assert rest == b"c\n"


def test_automatic_topic(bootstrap: str, topic: str) -> None:
    tidemark(bootstrap, "produce", topic, stdin=b"first use\n")
    assert consume(bootstrap, topic) == b"first use\n"


def test_delete_records(bootstrap: str, topic: str) -> None:
    tidemark(bootstrap, "topic", "create", topic, "--partitions", "1")
    for value in (b"a\n", b"b\n", b"c\n"):
        tidemark(bootstrap, "produce", topic, stdin=value)
    tidemark(bootstrap, "topic", "trim", topic, "--yes", "--before", "2")
    assert consume(bootstrap, topic) == b"c\n"


def test_record_too_large(bootstrap: str, topic: str) -> None:
    tidemark(bootstrap, "topic", "create", topic, "-c", "max.message.bytes=1000")
    refused = tidemark(bootstrap, "produce", topic, stdin=b"x" * 5000, status=1)
    assert b"MESSAGE_TOO_LARGE" in refused
    assert refused.count(b"\n") == 1


def test_group_admin(bootstrap: str, topic: str, group: str) -> None:
    tidemark(bootstrap, "produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    tidemark(bootstrap, "consume", topic, "--group", group, "--max", "2")
    assert group in [row["group"] for row in described(bootstrap, "group", "list")]
    shown = tidemark(bootstrap, "group", "describe", group).decode()
    assert topic in shown
    tidemark(bootstrap, "group", "reset", group, "--to", "beginning", "--yes")
    again = tidemark(bootstrap, "consume", topic, "--group", group, "--max", "3")
    assert again == b"a\nb\nc\n"
    tidemark(bootstrap, "group", "delete", group)
    assert group not in [row["group"] for row in described(bootstrap, "group", "list")]
