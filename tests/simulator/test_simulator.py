"""The simulator's own promises: the same run from the same seed, and its parts."""

import os
import subprocess
import sys
from random import Random

import pytest

from tidemark.protocol.types import NodeId
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.network import Network, Weather
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.shapes import SHAPES

_PRINT_DIGEST = (
    "from tidemark.testing.simulator.run import simulate; print(simulate(1, seconds=3).digest)"
)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_gives_the_same_run_in_every_process(hash_seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", _PRINT_DIGEST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == simulate(1, seconds=3).digest


def test_two_seeds_give_two_runs() -> None:
    assert simulate(1, seconds=1).digest != simulate(2, seconds=1).digest


def test_a_run_with_its_own_tape_is_the_same_run() -> None:
    drawn = simulate(5, seconds=5)
    again = simulate(5, knobs=drawn.knobs, script=drawn.tape)
    assert (again.at, again.invariant, again.tape) == (drawn.at, drawn.invariant, drawn.tape)


def test_events_run_in_the_order_of_their_times() -> None:
    queue, seen = EventQueue(), list[str]()
    queue.after(2, lambda: seen.append("late"))
    queue.after(1, lambda: seen.append("early"))
    queue.after(1, lambda: seen.append("early, second"))
    queue.run_until(1.5)
    assert seen == ["early", "early, second"]
    assert queue.now == 1.5
    queue.run_until(3)
    assert seen[-1] == "late"


def test_a_stream_is_its_own() -> None:
    assert stream(1, "net").random() == stream(1, "net").random()
    assert stream(1, "net").random() != stream(1, "disk").random()


class _Wire:
    def __init__(self, weather: Weather) -> None:
        self.got: list[object] = []
        self.queue = EventQueue()
        self.network = Network(
            self.queue,
            7,
            lambda _source, _target, message: self.got.append(message),
            weather,
            weather,
        )

    def send_all(self, count: int) -> None:
        for number in range(count):
            self.network.send(1, 2, number)
        self.queue.run_until(self.queue.now + 60)


def test_a_good_link_delivers_everything_once() -> None:
    wire = _Wire(Weather(in_order=True))
    wire.send_all(50)
    assert wire.got == list(range(50))


def test_a_bad_link_loses_doubles_and_reorders() -> None:
    wire = _Wire(Weather(loss=0.3, duplication=0.3, jitter_seconds=0.1))
    wire.send_all(200)
    assert wire.network.counts.lost > 30
    assert wire.network.counts.doubled > 30
    assert wire.got != sorted(wire.got, key=repr)


def test_a_cut_link_delivers_nothing_in_that_direction() -> None:
    wire = _Wire(Weather())
    wire.network.cut(1, 2)
    wire.send_all(3)
    assert wire.got == []
    wire.network.send(2, 1, "back")
    wire.network.mend(1, 2)
    wire.send_all(1)
    assert sorted(map(str, wire.got)) == ["0", "back"]


def test_a_clogged_link_delivers_late() -> None:
    wire = _Wire(Weather())
    wire.network.clog(1, 2, until=5.0)
    wire.network.send(1, 2, "late")
    wire.queue.run_until(4.9)
    assert wire.got == []
    wire.queue.run_until(5.1)
    assert wire.got == ["late"]


def test_a_link_that_is_flooded_is_noticed_or_drops() -> None:
    wire = _Wire(Weather(capacity=3))
    wire.send_all(10)
    assert len(wire.got) == 3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [3, 5])
def test_a_shape_cuts_links_between_brokers(shape: str, count: int) -> None:
    nodes = [NodeId(number) for number in range(1, count + 1)]
    cut = SHAPES[shape](Random(3), nodes)
    assert len(set(cut)) == len(cut)
    assert all(source != target and {source, target} <= set(nodes) for source, target in cut)


def test_a_run_that_does_not_end_is_a_violation() -> None:
    queue = EventQueue()
    queue.taken_max = 10

    def again() -> None:
        queue.after(0, again)

    queue.after(0, again)
    with pytest.raises(Violation, match="bounded"):
        queue.run_until(1)
