"""`tidemark serve` as a process: its ready line, its end, and what it says when it cannot start."""

import os
import resource
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.forked import outcome
from tests.system.serving import FREE_PORTS, SECONDS, command, running
from tidemark.testing.process import open_broker_process


def refused(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit status and the lines of a broker that does not start."""
    return outcome(command(*arguments), directory=folder)


@pytest.fixture
def hangups_are_heard() -> Iterator[None]:
    """Where tests are to outlive their terminal, the brokers that they start would, too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, *FREE_PORTS) as (process, ready):
        assert ready[1] == "1"
        with urlopen(f"http://{ready[3]}/readyz", timeout=SECONDS) as answer:
            assert answer.read() == b"ready\n"
        process.send_signal(number)
        output, log = process.communicate(timeout=SECONDS)
    assert output == "", "nothing but the ready line is on standard output"
    assert "stopped" in log.splitlines()[-1]
    assert process.returncode == 0
    assert (tmp_path / "tidemark-data" / "state.db").exists()


def test_of_several_listeners_the_ready_line_has_all(tmp_path: Path) -> None:
    several = "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0"
    map_ = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"
    with running(tmp_path, *FREE_PORTS, "--listen", several, "--set", map_) as (_, ready):
        first, second = ready[4].split(",")
        assert first == f"PLAINTEXT://127.0.0.1:{ready[2]}"
        name, _, port = second.rpartition(":")
        assert name == "INSIDE://127.0.0.1"
        assert port not in ("0", ready[2])


def test_a_broker_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    with running(tmp_path, *FREE_PORTS, within=["nohup"]) as (process, ready):
        process.send_signal(signal.SIGHUP)
        with urlopen(f"http://{ready[3]}/readyz", timeout=SECONDS) as answer:
            assert answer.read() == b"ready\n"
        process.terminate()
        _, log = process.communicate(timeout=SECONDS)
    assert "SIGTERM: stopping" in log
    assert process.returncode == 0


def test_settings_come_from_options_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('http.listen = "none"\nnode.id = 4\nlisteners = "127.0.0.1:1"\n')
    free = ("--set", "listen=127.0.0.1:0", "--peer-listen", "127.0.0.1:0")
    arguments = ("--config", str(file), *free, "--data-dir", "d")
    with running(tmp_path, *arguments, environment={"TIDEMARK_NODE_ID": "5"}) as (_, ready):
        assert (ready[1], ready[3]) == ("5", "none")
        assert (tmp_path / "d").exists()


def test_a_service_manager_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with running(tmp_path, *FREE_PORTS, environment=environment) as (process, _):
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"


def test_a_second_broker_on_the_same_directory_is_told_so(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "tidemark-data") as broker:
        status, lines = refused(tmp_path, *FREE_PORTS)
        assert (status, len(lines)) == (1, 1)
        assert f"is used by another broker (process {broker.pid})" in lines[0]


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments in (
            ("--listen", f"127.0.0.1:{port}"),
            ("--http", f"127.0.0.1:{port}"),
        ):
            status, lines = refused(tmp_path, *FREE_PORTS, *arguments)
            assert (status, len(lines)) == (1, 1)
            assert "in use" in lines[0]
            assert str(port) in lines[0]


def test_where_other_brokers_are_is_given_by_options_that_may_be_repeated(tmp_path: Path) -> None:
    _, lines = refused(tmp_path, "--join", "a:1", "--join", "b", "--peer-listen", "c")
    assert [line.partition(" (option)")[0] for line in lines] == [
        "tidemark: peer.listen = 'c'",
        "tidemark: join = 'a:1,b'",
    ]


def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, lines = refused(tmp_path, *FREE_PORTS, "--data-dir", "file/data")
    assert (status, len(lines)) == (1, 1)
    assert "file/data cannot be used" in lines[0]


def test_a_data_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "tidemark-data") as broker:
        assert broker.stop() == 0
    status, lines = refused(tmp_path, *FREE_PORTS, "--node-id", "2")
    assert (status, len(lines)) == (1, 1)
    assert "belongs to node 1" in lines[0]


def test_each_wrong_setting_is_a_line(tmp_path: Path) -> None:
    status, lines = refused(tmp_path, "--node-id", "x", "--set", "num.partition=1")
    assert status == 2
    assert lines == [
        "tidemark: num.partition (option) is not a setting; did you mean num.partitions?",
        "tidemark: node.id = 'x' (option): it takes a whole number, 0 or more",
    ]


@pytest.mark.parametrize("arguments", [["--frobnicate"], ["--set", "novalue"]])
def test_wrong_usage_has_status_2(tmp_path: Path, arguments: list[str]) -> None:
    status, lines = refused(tmp_path, *arguments)
    assert (status, len(lines)) == (2, 1)


def test_it_uses_all_the_descriptors_it_is_allowed(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # This process may have many open, of client libraries that are slow to let go.
    low = max(256, 2 * len(os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(low, hard), hard))
    try:
        with running(tmp_path, *FREE_PORTS) as (process, _):
            assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
