"""Time as a process of the core's layer lives it."""

from tidemark.testing.simulator.core.awake import AwakeClock
from tidemark.testing.simulator.events import EventQueue


def passed(queue: EventQueue, seconds: float) -> None:
    queue.run_until(queue.now + seconds)


def test_no_time_passes_in_a_pause() -> None:
    queue = EventQueue()
    awake = AwakeClock(queue)
    passed(queue, 1.0)
    awake.pause(2.0)
    passed(queue, 1.0)
    was_awake, lived = awake.is_awake, awake.seconds
    passed(queue, 1.5)
    assert (was_awake, lived) == (False, 1.0)
    assert (awake.is_awake, awake.seconds) == (True, 1.5)


def test_pauses_that_overlap_count_once() -> None:
    queue = EventQueue()
    awake = AwakeClock(queue)
    awake.pause(2.0)
    passed(queue, 1.0)
    awake.pause(0.5)
    awake.pause(3.0)
    passed(queue, 4.0)
    assert awake.seconds == 1.0


def test_who_is_woken_goes_on_at_once() -> None:
    queue = EventQueue()
    awake = AwakeClock(queue)
    awake.pause(10.0)
    passed(queue, 1.0)
    awake.wake()
    awake.wake()
    passed(queue, 1.0)
    assert awake.is_awake
    assert awake.seconds == 1.0
