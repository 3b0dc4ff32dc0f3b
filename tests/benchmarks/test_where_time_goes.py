"""Samples are counted for the step they belong to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import on_cpu
from benchmarks.where_time_goes import step_of


def test_a_sample_belongs_to_its_innermost_frame_that_is_of_a_step() -> None:
    frames = [
        "/lib/struct.py:pack",
        "/x/tidemark/broker/network/send_queue.py:send",
        "/x/tidemark/broker/network/connection.py:_send",
    ]
    assert step_of(frames) == "send: send, sendmsg, sendfile"
    assert step_of(frames[2:]) == "connection, dispatch, turn"
    assert step_of(frames[:1]) == "other"


def test_a_process_counts_where_its_processor_time_goes(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(Path(on_cpu.__file__).read_text())
    program = "def busy():\n    while True: pass\nprint('ready', flush=True)\nbusy()\n"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), on_cpu.FOLDER: str(tmp_path)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            found, deadline = "", time.monotonic() + 30
            while ":busy" not in found and time.monotonic() < deadline:
                os.kill(process.pid, signal.SIGUSR2)
                time.sleep(0.1)
                written = tmp_path / str(process.pid)
                found = written.read_text() if written.exists() else ""
        finally:
            process.kill()
    assert ":busy" in found
