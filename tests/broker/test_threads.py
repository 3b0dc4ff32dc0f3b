"""Where the system gives no more threads, in a process that has none to use again."""

import subprocess
import sys
from typing import Final

WITHOUT: Final = """
import logging, threading, trio
from tidemark.broker.threads import run_in_thread

logging.basicConfig(format="%(message)s")
MORE_THAN_THERE_IS = 1 << 46


async def work():
    print(await run_in_thread(int, "7"))


async def main():
    threading.stack_size(MORE_THAN_THERE_IS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.sleep(0.1)
        print("the loop goes on")
        threading.stack_size(0)


trio.run(main)
"""
OF_ITS_OWN: Final = """
import trio
from tidemark.broker.threads import run_in_thread

asked = []


def start_threads():
    asked.append(None)
    raise RuntimeError("can't start new thread")


async def main():
    try:
        await run_in_thread(start_threads)
    except RuntimeError:
        print(len(asked))


trio.run(main)
"""
OF_NAMES: Final = """
import threading, trio
from tidemark.broker.config import Address
from tidemark.broker.peers.connecting import connect


async def main():
    threading.stack_size(1 << 46)
    try:
        await connect([Address("localhost", 1)])
    except OSError as error:
        print(error)


trio.run(main)
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_what_needs_a_thread_waits_until_there_is_one() -> None:
    done = run(WITHOUT)
    assert done.stdout.split("\n") == ["the loop goes on", "7", ""]
    assert done.stderr.count("no thread can be started") == 1
    assert done.returncode == 0


def test_a_step_that_finds_no_thread_itself_is_not_done_again() -> None:
    assert run(OF_ITS_OWN).stdout == "1\n"


def test_a_broker_whose_name_cannot_be_looked_up_without_a_thread_is_out_of_reach() -> None:
    assert run(OF_NAMES).stdout == "can't start new thread\n"
