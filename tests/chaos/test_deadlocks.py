"""Clients that wait for ever are told from those that wait for something to happen."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer

from tests.chaos.workload.deadlocks import deadlocked_clients


def test_a_main_thread_counts_that_waits_for_a_lock_without_an_end() -> None:
    held, is_named = threading.Lock(), threading.Event()

    def wait() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("rdk:main")
        is_named.set()
        held.acquire()

    thread = threading.Thread(target=wait, daemon=True)
    held.acquire()
    with closing(Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})):
        assert deadlocked_clients() == 0
        thread.start()
        is_named.wait()
        time.sleep(0.2)
        assert deadlocked_clients() == 1
        held.release()
        thread.join()
        assert deadlocked_clients() == 0
