"""How does the cost of a request grow with what there is of connections and of partitions?

One record of 1 KB a request, acks=all, `flush=os`; the cost is the processor time of the broker, so
that what the client takes of the machine does not count. Each case is measured in turn with the
smallest one, by the same broker.

Of five in flight to one partition the broker makes one append, and of five to five partitions five:
so with partitions in turn these show what that is worth. What the number of partitions costs by
itself is shown by one in flight, where no append takes more than one.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.against_limits import address_of
from benchmarks.harness import Row, row_of_pairs
from benchmarks.raw_client import (
    batch_of,
    create_topic,
    produce_frame,
    produce_load,
    produce_load_of,
)
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess, open_broker_process

CONNECTIONS: Final = (100, 1_000)
PARTITIONS: Final = (256, 2_000)
_REQUESTS: Final = 20_000
_IN_FLIGHT: Final = 5
"""On each connection."""
_PAIRS: Final = 5
_GROWTH_MAX: Final = 1.2


def measure(directory: Path) -> Iterator[Row]:
    """Microseconds of a core for a request, as multiples of what the smallest case takes."""
    with open_broker_process(directory / "scaling") as broker:
        address = address_of(broker)
        create_topic(address, "scaling", partitions=max(PARTITIONS), flush="os")
        batch = batch_of(1_200)
        frames = [
            produce_frame("scaling", batch, acks=-1, partition=number)
            for number in range(max(PARTITIONS))
        ]
        for connections in CONNECTIONS:
            yield _row(
                f"{connections:,} connections, 5 in flight on each",
                "one connection",
                [
                    (_by_connections(broker, frames[0], connections), _alone(broker, frames[0]))
                    for _ in range(_PAIRS)
                ],
            )
        _in_turn(broker, frames)  # the first write to a partition opens its file
        for partitions in PARTITIONS:
            yield _row(
                f"{partitions:,} partitions in turn, 1 connection",
                "one partition",
                [
                    (_in_turn(broker, frames[:partitions]), _alone(broker, frames[0]))
                    for _ in range(_PAIRS)
                ],
            )
        one_by_one = partial(_in_turn, broker, in_flight=1)
        for partitions in PARTITIONS:
            yield _row(
                f"{partitions:,} partitions in turn, 1 connection, 1 in flight",
                "one partition",
                [(one_by_one(frames[:partitions]), one_by_one(frames[:1])) for _ in range(_PAIRS)],
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


def _alone(broker: BrokerProcess, frame: bytes) -> float:
    return _by_connections(broker, frame, 1)


def _by_connections(broker: BrokerProcess, frame: bytes, connections: int) -> float:
    before = cpu_seconds(broker.pid)
    produce_load(
        address_of(broker),
        frame,
        requests=_REQUESTS,
        connections=connections,
        in_flight=_IN_FLIGHT,
    )
    return (cpu_seconds(broker.pid) - before) / _REQUESTS * 1e6


def _in_turn(
    broker: BrokerProcess, frames: Sequence[bytes], *, in_flight: int = _IN_FLIGHT
) -> float:
    before = cpu_seconds(broker.pid)
    produce_load_of(
        address_of(broker), itertools.cycle(frames), requests=_REQUESTS, in_flight=in_flight
    )
    return (cpu_seconds(broker.pid) - before) / _REQUESTS * 1e6
