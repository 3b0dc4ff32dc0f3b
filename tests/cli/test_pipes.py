"""How the command behaves between other processes: pipes, Ctrl-C, terminals, kcat."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tidemark.testing import BlockingCluster

TIDEMARK = [sys.executable, "-m", "tidemark.cli.main"]
KCAT = shutil.which("kcat")
needs_kcat = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


@pytest.fixture
def topic(command: Command, name: str) -> str:
    assert command("topic", "create", name, "-p", "1").status == 0
    return name


@pytest.fixture
def following(tidemark_session: BlockingCluster, topic: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`consume` in a process of its own, waiting for records."""
    process = subprocess.Popen(
        [*TIDEMARK, "consume", topic, "--bootstrap", tidemark_session.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield process
    process.kill()
    process.communicate()


def test_a_record_is_in_the_pipe_as_soon_as_it_is_read(
    command: Command, topic: str, following: "subprocess.Popen[bytes]"
) -> None:
    command("produce", topic, stdin=b"first\n")
    assert following.stdout is not None
    assert following.stdout.readline() == b"first\n"
    command("produce", topic, stdin=b"second\n")
    assert following.stdout.readline() == b"second\n"


def test_ctrl_c_ends_consume_without_a_word(
    command: Command, topic: str, following: "subprocess.Popen[bytes]"
) -> None:
    command("produce", topic, stdin=b"x\n")
    assert following.stdout is not None
    following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, error = following.communicate(timeout=10)
    assert (following.returncode, error) == (130, b"")


def test_ctrl_c_leaves_the_group_behind_what_was_printed(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    command("produce", topic, stdin=b"a\nb\n")
    group = f"{topic}-group"
    bootstrap = ["--bootstrap", tidemark_session.bootstrap]
    process = subprocess.Popen(
        [*TIDEMARK, "consume", topic, "--group", group, *bootstrap], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"a\n", b"b\n"]
    time.sleep(0.1)  # It asks for more now, which says that it is done with these.
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    described = json.loads(command("group", "describe", group, "-o", "json").out)
    assert (described["state"], described["total_lag"]) == ("Empty", 0)


def test_ctrl_c_ends_produce_that_waits_for_input(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    process = subprocess.Popen(
        [*TIDEMARK, "produce", topic, "--bootstrap", tidemark_session.bootstrap],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"sent at once\n")
    process.stdin.flush()
    assert command("consume", topic, "--max", "1").out == b"sent at once\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)  # Closing the input at the same moment would be another way to end.
    _, error = process.communicate(timeout=10)
    assert (process.returncode, error) == (130, b"")


def test_a_reader_that_goes_away_ends_consume_without_a_word(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    command("produce", topic, stdin=(b"line" * 25 + b"\n") * 5_000)
    process = subprocess.Popen(
        [*TIDEMARK, "consume", topic, "--bootstrap", tidemark_session.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"line" * 25 + b"\n"
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=10), error) == (141, b"")


def test_a_reader_that_goes_away_ends_consume_that_waits_for_records(
    command: Command, topic: str, following: "subprocess.Popen[bytes]"
) -> None:
    command("produce", topic, stdin=b"first\n")
    assert following.stdout is not None
    assert following.stdout.readline() == b"first\n"
    following.stdout.close()
    assert following.stderr is not None
    assert (following.wait(timeout=10), following.stderr.read()) == (141, b"")


def test_a_reader_that_goes_away_ends_top_without_a_word(
    tidemark_session: BlockingCluster, topic: str
) -> None:
    process = subprocess.Popen(
        [*TIDEMARK, "top", "--every", "0.1", "--bootstrap", tidemark_session.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"tidemark top  cluster ")
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=10), error) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "closed"),
    [
        (["topic", "list"], ">&-"),
        (["topic", "list"], "<&- >&- 2>&-"),
        (["produce"], "<&-"),
        (["consume", "--exit"], ">&-"),
    ],
)
def test_closed_streams_are_empty_and_take_everything(
    tidemark_session: BlockingCluster, topic: str, arguments: list[str], closed: str
) -> None:
    # A topic's name behind the verb that takes one.
    verb, *others = arguments
    line = [verb, topic, *others] if verb != "topic" else arguments
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *TIDEMARK, *line],
        env=os.environ | {"TIDEMARK_BOOTSTRAP": tidemark_session.bootstrap},
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [["consume", "{topic}", "--exit"], ["topic", "list"], ["topic", "list", "--help"]]
)
def test_a_full_disk_behind_standard_output_is_not_taken_for_the_brokers(
    tidemark_session: BlockingCluster, command: Command, topic: str, arguments: list[str]
) -> None:
    command("produce", topic, stdin=b"x\n")
    line = [each.format(topic=topic) for each in arguments]
    # With it, nothing is left for the interpreter to write at its end.
    buffered = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*TIDEMARK, *line, "--bootstrap", tidemark_session.bootstrap],
            env=buffered,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=30,
        )
    assert done.returncode == 1
    assert done.stderr == b"tidemark: standard output: No space left on device\n"


def test_a_table_in_a_pipe_has_no_colour(tidemark_session: BlockingCluster, topic: str) -> None:
    done = subprocess.run(
        [*TIDEMARK, "topic", "list"],
        env=os.environ
        | {"TIDEMARK_BOOTSTRAP": tidemark_session.bootstrap, "TERM": "xterm-256color"},
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert b"\x1b" not in done.stdout
    assert topic.encode() in done.stdout


def test_a_terminal_is_asked_and_told(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    command("produce", topic, stdin=b"a\nb\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*TIDEMARK, "topic", "trim", topic, "--before", "1"],
        env=os.environ | {"TIDEMARK_BOOTSTRAP": tidemark_session.bootstrap},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, b"y\n")
    while b"trimmed" not in shown:
        shown += os.read(ours, 1000)
    assert process.wait(timeout=10) == 0
    os.close(ours)
    assert b"Delete these records?" in shown
    assert command("consume", topic, "--exit").out == b"b\n"


@needs_kcat
def test_kcat_reads_what_tidemark_wrote(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    command("produce", topic, "-K", ":", "-H", "a=1", "-Z", "-z", "lz4", stdin=b"k:v\nplain\nk2:\n")
    layout = r"%k|%K|%s|%S|%h|%t|%p|%o|%T\n"
    printed = kcat(tidemark_session, "-C", "-t", topic, "-e", "-q", "-f", layout)
    assert printed == command("consume", topic, "--exit", "--kcat-format", layout).out
    assert [line.rsplit(b"|", 1)[0] for line in printed.splitlines()] == [
        b"k|1|v|1|a=1|%s|0|0" % topic.encode(),
        b"|-1|plain|5|a=1|%s|0|1" % topic.encode(),
        b"k2|2||-1|a=1|%s|0|2" % topic.encode(),
    ]


@needs_kcat
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_tidemark_reads_what_kcat_wrote(
    tidemark_session: BlockingCluster, command: Command, topic: str, codec: str, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"key%d:value%d\n" % (i, i) for i in range(500)))
    kcat(tidemark_session, "-P", "-t", topic, "-K:", "-H", "h=1", "-z", codec, "-l", str(path))
    printed = command("consume", topic, "--exit", "-f", r"%k:%v\n").out
    assert printed == path.read_bytes()
    # librdkafka leaves a batch as it is where compressing it would not make it smaller.
    printed = command("consume", topic, "--exit", "-f", r"%h{%k=%v} %a{compression}\n").out
    assert b"h=1 " + codec.encode() in printed.splitlines()


def kcat(cluster: BlockingCluster, *arguments: str) -> bytes:
    assert KCAT is not None
    done = subprocess.run(
        [KCAT, "-b", cluster.bootstrap, *arguments], capture_output=True, check=True, timeout=30
    )
    return done.stdout


def test_records_can_be_typed_and_nothing_is_drawn_over_them(
    tidemark_session: BlockingCluster, command: Command, topic: str
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*TIDEMARK, "produce", topic, "--bootstrap", tidemark_session.bootstrap],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        os.write(ours, b"typed\n")
        assert command("consume", topic, "--max", "1").out == b"typed\n"
        os.write(ours, b"\x04")  # Ctrl-D
        assert process.wait(10) == 0
        shown = os.read(ours, 65536)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert f"each line is a record of {topic}; Ctrl-D ends".encode() in shown
    assert b"\x1b" not in shown
    assert f"1 records to {topic}".encode() in shown
