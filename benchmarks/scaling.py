"""How does the cost of a request grow with what there is of connections and of partitions?

One record of 1 KB a request, acks=all, `flush=os`; the cost is the processor time of the broker, so
that what the client takes of the machine does not count. What a load leaves to be done afterwards,
once a second, belongs to it: so each case has a broker of its own, whose time counts from one run
to the next, and the smallest case another, in turn with it. After half of the pairs the two change
places, since no two processes are quite alike.

Of five in flight to one partition the broker makes one append, and of five to five partitions five:
so with partitions in turn these show what that is worth. What the number of partitions costs by
itself is shown by one in flight, where no append takes more than one.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.against_limits import address_of
from benchmarks.calm import open_calm_broker
from benchmarks.harness import Row, row_of_pairs
from benchmarks.raw_client import (
    batch_of,
    create_topic,
    produce_frame,
    produce_load,
    produce_load_of,
)
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess

CONNECTIONS: Final = (100, 1_000)
PARTITIONS: Final = (256, 2_000)
_IN_FLIGHT: Final = 5
"""On each connection."""
_SECONDS: Final = 1.0
"""A load takes about as long: what is done once a second for each partition counts as often as it
should then, and that a thousand connections come and go hardly counts."""
_TRIAL_REQUESTS: Final = 6_000
_PAIRS: Final = 10
_REST_SECONDS: Final = 2.0
"""After it nothing that a run has left is still to be done."""
_GROWTH_MAX: Final = 1.2

Run: TypeAlias = Callable[[BrokerProcess, int], None]
"""A load of so many requests."""


def measure(directory: Path) -> Iterator[Row]:
    """Microseconds of a core for a request, as multiples of what the smallest case takes."""
    with (
        open_calm_broker(directory / "scaling") as one,
        open_calm_broker(directory / "scaling-other") as other,
    ):
        batch = batch_of(1_200)
        frames = [
            produce_frame("scaling", batch, acks=-1, partition=number)
            for number in range(max(PARTITIONS))
        ]
        for broker in (one, other):
            create_topic(address_of(broker), "scaling", partitions=len(frames), flush="os")
            _in_turn(frames, broker, len(frames))  # the first write to a partition opens its file
        in_pairs = partial(_in_pairs, (one, other))
        alone: Run = partial(_by_connections, frames[0], 1)
        for connections in CONNECTIONS:
            yield _row(
                f"{connections:,} connections, 5 in flight on each",
                "one connection",
                in_pairs(partial(_by_connections, frames[0], connections), alone),
            )
        for in_flight, said in ((_IN_FLIGHT, ""), (1, ", 1 in flight")):
            alone = partial(_in_turn, frames[:1], in_flight=in_flight)
            for partitions in PARTITIONS:
                yield _row(
                    f"{partitions:,} partitions in turn, 1 connection{said}",
                    "one partition",
                    in_pairs(partial(_in_turn, frames[:partitions], in_flight=in_flight), alone),
                )


def _row(case: str, against: str, pairs: Sequence[tuple[float, float]]) -> Row:
    return row_of_pairs(
        "the broker's processor time for a request",
        case,
        "µs",
        pairs,
        against=against,
        aim=_GROWTH_MAX,
        at_most=True,
    )


def _in_pairs(
    brokers: tuple[BrokerProcess, BrokerProcess], many: Run, alone: Run
) -> list[tuple[float, float]]:
    """What a request of both takes, in turn, each by both brokers; a first pair does not count."""
    one, other = brokers
    half, requests = _PAIRS // 2, _requests_of_a_load(one, many)
    return [
        *_costs((one, many), (other, alone), half, requests),
        *_costs((other, many), (one, alone), half, requests),
    ]


def _requests_of_a_load(broker: BrokerProcess, run: Run) -> int:
    run(broker, _TRIAL_REQUESTS)
    begun = time.perf_counter()
    run(broker, _TRIAL_REQUESTS)
    return round(_TRIAL_REQUESTS * _SECONDS / (time.perf_counter() - begun))


def _costs(
    many: tuple[BrokerProcess, Run], alone: tuple[BrokerProcess, Run], pairs: int, requests: int
) -> list[tuple[float, float]]:
    sides = (many, alone)
    begun: tuple[list[float], list[float]] = ([], [])
    for number in range(1 + pairs):
        for side in (0, 1) if number % 2 else (1, 0):
            broker, run = sides[side]
            begun[side].append(cpu_seconds(broker.pid))
            run(broker, requests)
    time.sleep(_REST_SECONDS)
    for side, (broker, _) in enumerate(sides):
        begun[side].append(cpu_seconds(broker.pid))
    of_many, of_alone = (
        [(after - before) / requests * 1e6 for before, after in pairwise(at)] for at in begun
    )
    return list(zip(of_many, of_alone, strict=True))[1:]


def _by_connections(frame: bytes, connections: int, broker: BrokerProcess, requests: int) -> None:
    produce_load(
        address_of(broker),
        frame,
        requests=requests,
        connections=connections,
        in_flight=_IN_FLIGHT,
    )


def _in_turn(
    frames: Sequence[bytes],
    broker: BrokerProcess,
    requests: int,
    *,
    in_flight: int = _IN_FLIGHT,
) -> None:
    produce_load_of(
        address_of(broker), itertools.cycle(frames), requests=requests, in_flight=in_flight
    )
