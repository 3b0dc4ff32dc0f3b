"""One broker loses what it had not synced, and the others stand still in an order of one's choice.

The dangerous case of replicated logs: after the loss, two brokers that were never awake together
must not each find a majority for another history.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Final

from tests.chaos.brokers import ChaosCluster
from tests.chaos.faults.fault import Fault

NODES: Final = 3
_ALONE_SECONDS: Final = 1.5
_TOGETHER_SECONDS: Final = 3.5


@contextmanager
def kill_and_pause(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    order = rng.sample(cluster.nodes, NODES)
    with _in_turn(cluster, rng, order=order, loses_power=False) as said:
        yield said


@contextmanager
def cut_power_and_pause(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    order = rng.sample(cluster.nodes, NODES)
    with _in_turn(cluster, rng, order=order, loses_power=True) as said:
        yield said


def in_order(order: Sequence[int], *, loses_power: bool) -> Fault:
    """That schedule with that order."""
    return partial(_in_turn, order=order, loses_power=loses_power)


@contextmanager
def _in_turn(
    cluster: ChaosCluster, rng: Random, *, order: Sequence[int], loses_power: bool
) -> Iterator[str]:
    """Of `order`: the first ends while the second stands still, comes back to the third alone, and
    is then with the second alone, while the third stands still."""
    del rng
    first, second, third = (cluster.brokers[node] for node in order)
    second.pause_if_running()  # another fault of the round may have ended it
    if loses_power:
        cluster.cut_power([first.node])
    else:
        first.kill_if_running()
    time.sleep(_ALONE_SECONDS)
    first.spawn()
    time.sleep(_TOGETHER_SECONDS)
    third.pause_if_running()
    second.resume_if_running()
    time.sleep(_TOGETHER_SECONDS)
    third.resume_if_running()
    how = "power cut" if loses_power else "kill -9"
    yield f"{how} of {first.node}, pause of {second.node} and then of {third.node}"
