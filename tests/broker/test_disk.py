import threading
from collections.abc import Callable

import trio
import trio.testing

from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.protocol.types import Offset


class FakeLog:
    """A log whose sync can be held back, and can fail."""

    def __init__(self, sync: Callable[[], None] = lambda: None) -> None:
        self.end = Offset(0)
        self.sync_disk = sync
        self.captures = list[Offset]()
        self.durable = list[Offset]()
        self.is_durable = trio.Event()

    def begin_sync(self) -> "FakeCapture":
        self.captures.append(self.end)
        return FakeCapture(self.end, self.sync_disk)

    def synced(self, end_offset: Offset) -> None:
        self.durable.append(end_offset)
        self.is_durable.set()


class FakeCapture:
    def __init__(self, end: Offset, sync_disk: Callable[[], None]) -> None:
        self.end, self.sync_disk = end, sync_disk

    def sync(self) -> Offset:
        self.sync_disk()
        return self.end


def never(error: OSError) -> None:
    raise AssertionError(f"no sync fails here: {error}")


async def test_what_is_appended_during_a_sync_is_one_group() -> None:
    gate, turn = threading.Semaphore(0), Turn()

    def wait_at_gate() -> None:
        gate.acquire()

    log = FakeLog(sync=wait_at_gate)
    async with open_disk_writer(turn=turn, failed=never) as disk:
        log.end = Offset(1)
        disk.enqueue(log)
        for end in range(2, 50):
            log.end = Offset(end)
            disk.enqueue(log)
        gate.release()
        gate.release()
        await disk.wait_idle()
    assert log.captures == [1, 49]
    assert log.durable == [1, 49]


async def test_a_turn_is_one_group() -> None:
    turn, logs = Turn(), [FakeLog(), FakeLog()]
    groups = list[int]()

    def observe(seconds: float, logs: int) -> None:
        groups.append(logs)

    async with open_disk_writer(turn=turn, failed=never, observe=observe) as disk:

        def work() -> None:
            for end in range(1, 4):
                for log in logs:
                    log.end = Offset(end)
                    disk.enqueue(log)

        turn.run(work)
        await disk.wait_idle()
    assert [log.durable for log in logs] == [[3], [3]]
    assert groups == [2]


async def test_leaving_the_block_syncs_what_is_queued() -> None:
    log = FakeLog()
    async with open_disk_writer(turn=Turn(), failed=never) as disk:
        log.end = Offset(7)
        disk.enqueue(log)
    assert log.durable == [7]


def fail() -> None:
    raise OSError(5, "Input/output error")


async def test_after_a_failed_sync_nothing_is_ever_reported_durable() -> None:
    errors = list[OSError]()
    broken, healthy = FakeLog(sync=fail), FakeLog()
    async with open_disk_writer(turn=Turn(), failed=errors.append) as disk:
        disk.enqueue(broken)
        await disk.wait_idle()
        disk.enqueue(healthy)
        await trio.testing.wait_all_tasks_blocked()
        assert disk.error is errors[0]
    assert broken.durable == healthy.durable == []
