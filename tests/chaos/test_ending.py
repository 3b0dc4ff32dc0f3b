"""A run that a signal ends is judged all the same."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "tests.chaos", "--json", "--network", "proxies", "--no-tls"]
COMMAND += ["--brokers", "1", "--only", "pause one", "--no-operator", "--seed", "1", "--rate", "50"]


def wait_said(run: "subprocess.Popen[str]", what: str) -> None:
    assert run.stderr is not None
    for line in run.stderr:
        if what in line:
            return
    raise AssertionError(f"it ended with {run.wait()}, and never said {what}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_ends_its_faults_and_is_judged(
    number: signal.Signals, tmp_path: Path
) -> None:
    """A terminal tells all processes of the run."""
    command = [*COMMAND, "--keep", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            wait_said(run, "pause of [1]")
            os.killpg(run.pid, number)
            wait_said(run, f"ended by {number.name}")
            output, rest = run.communicate(timeout=120)
        finally:
            run.send_signal(signal.SIGINT)  # does nothing once it has ended
    report = json.loads(output)
    assert (report["rounds"], report["ended_by"]) == (1, number.name)
    assert report["good"] is (run.returncode == 0) is True, output
    assert f"cut short by {number.name}" in rest
    assert report["topics"]["synced"]["polled"] > 0
