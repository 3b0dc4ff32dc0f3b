"""Benchmarks wait for brokers that have settled in."""

import subprocess
import sys

from benchmarks.calm import wait_calm
from tidemark.cli.processes import cpu_seconds

SETTLING = """
import time
time.sleep(0.5)
while time.process_time() < 1.5:
    pass
time.sleep(600)
"""


def test_a_process_is_calm_once_it_has_done_what_it_had_to_do() -> None:
    with subprocess.Popen([sys.executable, "-c", SETTLING]) as process:
        try:
            wait_calm([process.pid])
            assert cpu_seconds(process.pid) >= 1.5
        finally:
            process.kill()
