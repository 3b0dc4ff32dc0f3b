"""Samples are counted for the step they belong to."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks import on_cpu
from benchmarks.where_time_goes.paths import PATHS
from benchmarks.where_time_goes.profile import ORDER, OTHER_THREADS, Profile
from benchmarks.where_time_goes.steps import OTHER, step_of


def test_a_sample_belongs_to_its_innermost_frame_that_is_of_a_step() -> None:
    frames = [
        "/lib/struct.py:pack",
        "/x/tidemark/broker/network/send_queue.py:send",
        "/x/tidemark/broker/network/connection.py:_send",
    ]
    assert step_of(frames) == "send: send, sendmsg, sendfile"
    assert step_of(frames[2:]) == "connection, dispatch, turn"
    assert step_of(frames[:1]) == OTHER
    assert step_of(["/x/partitions/storage/files.py:sync"]) == "sync"


def test_the_steps_of_the_loop_and_the_other_threads_are_the_whole() -> None:
    profile = Profile(
        path="large",
        title="1 MB",
        broker="leader",
        unit="request",
        microseconds=100,
        loop_microseconds=80,
        samples=10,
        steps={"send": 0.75, OTHER: 0.25},
        calls={},
    )
    assert profile.by_step() == [("send", 60), (OTHER, 20), (OTHER_THREADS, 20)]


def test_each_path_has_its_place_on_the_page() -> None:
    assert tuple(PATHS) == ORDER


def test_a_process_counts_where_the_time_of_its_first_thread_goes(tmp_path: Path) -> None:
    """What another one takes is nobody's, though this one sleeps meanwhile."""
    found = counted(
        tmp_path,
        "import os, signal, threading, time\n"
        "def busy(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "def other(): busy(1.0)\n"
        "def first(): busy(0.3)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "thread = threading.Thread(target=other)\n"
        "thread.start()\n"
        "thread.join()\n"
        "first()\n",
    )
    assert found
    of_first = sum(count for count, frames in found if ":first" in frames)
    assert of_first > 0.9 * sum(count for count, _ in found), found


def counted(folder: Path, program: str) -> list[tuple[int, str]]:
    """What the samples of a program are, each with the frames that it was counted for."""
    (folder / "sitecustomize.py").write_text(Path(on_cpu.__file__).read_text())
    ending = "os.kill(os.getpid(), signal.SIGUSR2)\n"
    environment = {**os.environ, "PYTHONPATH": str(folder), on_cpu.FOLDER: str(folder)}
    command = [sys.executable, "-c", program + ending]
    with subprocess.Popen(command, env=environment) as process:
        assert process.wait(60) == 0
    (written,) = folder.glob("[0-9]*")
    lines = [line.partition(" ") for line in written.read_text().splitlines()]
    return [(int(count), frames) for count, _, frames in lines]
