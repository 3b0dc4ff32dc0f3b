"""What `strace` and the kernel say is read as it is written."""

import os
import socket

import pytest

from benchmarks.matrix.processes import used
from benchmarks.resources import calls_in
from tidemark.cli.processes import cpu_seconds, listener_of

SUMMARY = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           2        30         5 recvfrom
 40.00    0.000040           1        40           pwrite64
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           1        70         5 total
"""


def test_calls_are_counted_by_name_most_first() -> None:
    assert calls_in(SUMMARY) == {"pwrite64": 40, "recvfrom": 30}


def test_the_process_that_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert listener_of(port) == os.getpid()
    with pytest.raises(LookupError, match=f"port {port}"):
        listener_of(port)


def test_a_process_uses_processor_time_and_memory() -> None:
    before = cpu_seconds(os.getpid())
    sum(range(100_000))
    now = used([os.getpid()])
    assert 0 < before < now.cpu_seconds
    assert 0 < now.resident_bytes <= now.peak_bytes
