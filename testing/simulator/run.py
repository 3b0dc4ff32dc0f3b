"""One run from its seed to its verdict."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidemark.partitions.raft import marks
from tidemark.testing.checkers.history import History
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.core.finish import finish as finish_core
from tidemark.testing.simulator.core.world import CoreWorld
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.liveness import finish
from tidemark.testing.simulator.trace import Line, Trace
from tidemark.testing.simulator.world import World

SECONDS: Final = {
    Layer.FULL: 30.0,
    Layer.CORE: 300.0,
    Layer.REPLICAS: 30.0,
    Layer.TRANSACTIONS: 20.0,
}
EVENTS_MAX: Final = 600_000
"""In a run of that length; a longer one may have so many more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a run."""

    seed: int
    knobs: Knobs
    digest: str
    """Of all that happened: equal for two runs that were the same."""
    invariant: str | None
    """The one that was broken, if one was."""
    what: str = ""
    at: float = 0.0
    """Simulated seconds until then, or in all."""
    events: int = 0
    cpu_seconds: float = 0.0
    tape: tuple[Fault, ...] = ()
    coverage: Coverage
    lines: tuple[Line, ...] = ()
    was_repeated: bool = False
    """Whether the seed was run again in another process, and the two were compared (`twice`)."""

    @property
    def passed(self) -> bool:
        return self.invariant is None


def simulate(
    seed: int,
    *,
    knobs: Knobs | None = None,
    seconds: float | None = None,
    layer: Layer = Layer.FULL,
    script: Sequence[Fault] | None = None,
    lines_max: int = 0,
) -> Verdict:
    """Run a seed; with a `script`, that very tape of faults and no other."""
    started = time.process_time()
    seconds = seconds or SECONDS[layer]
    knobs = knobs or draw_knobs(seed, seconds=seconds, layer=layer)
    trace = Trace(lines_max)
    invariant, what = None, ""
    with marks.collecting() as found:
        world = _make_world(seed, knobs, script, trace)
        try:
            _run(world)
        except Violation as violation:
            invariant, what = violation.invariant, str(violation)
        except Exception as error:
            # Whatever the code under test raises is a find, and the run is over.
            invariant, what = f"no exception ({type(error).__name__})", traceback.format_exc()
    queue = world.queue
    trace.note(queue.now, 0, "end", f"{queue.taken} events, {world.network.counts}")
    world.coverage.marks.update(found)
    if isinstance(world, World):
        world.coverage.counts.update(_client_operations(world.history))
        if world.play is not None:
            world.coverage.counts.update(world.play.counts())
    return Verdict(
        seed=seed,
        knobs=knobs,
        digest=trace.digest,
        invariant=invariant,
        what=what,
        at=queue.now,
        events=queue.taken,
        cpu_seconds=time.process_time() - started,
        tape=tuple(world.nemesis.tape),
        coverage=world.coverage,
        lines=tuple(trace.lines),
    )


def _make_world(
    seed: int, knobs: Knobs, script: Sequence[Fault] | None, trace: Trace
) -> World | CoreWorld:
    if knobs.layer == Layer.CORE:
        return CoreWorld(seed, knobs, script, trace)
    return World(seed, knobs, script, trace)


def _run(world: World | CoreWorld) -> None:
    knobs = world.knobs
    world.queue.taken_max = int(EVENTS_MAX * max(1.0, knobs.seconds / SECONDS[Layer(knobs.layer)]))
    world.start()
    world.queue.run_until(knobs.seconds)
    if isinstance(world, World):
        finish(world)
    else:
        finish_core(world)


def _client_operations(history: History) -> dict[str, int]:
    """How much clients did, by what came of it."""
    found = Counter(f"sends {send.outcome.value}" for send in history.sends)
    found["records sent"] = sum(len(send.values) for send in history.sends)
    found["polls"] = len(history.polls)
    found["records polled"] = sum(len(poll.records) for poll in history.polls)
    return found
