"""Whole brokers between which some directed links are cut for good: who can work, works, in time.

The same graphs are tried with bare cores in `tests/scenarios/test_liveness.py`. Here heartbeats,
timeouts, queues of candidates and the journal are the real ones, and time is measured.
"""

from itertools import combinations, permutations

import pytest

from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.world import World

CUT_AT = 1.5
LEADER_SECONDS = 5.0
QUIET_SECONDS = 2.0
LINKS = [*permutations((1, 2, 3), 2)]
HUB = 5
# Howard and Abraham: only the one in the middle is connected to a majority.
STAR = [link for link in permutations(range(1, 6), 2) if HUB not in link]


def cut_off(links: list[tuple[int, int]], *, nodes: int, seed: int, resets: float) -> World:
    """A cluster of one group, some seconds after these links were cut."""
    knobs = Knobs(
        nodes=nodes,
        voters=nodes,
        groups=1,
        producers=1,
        failure_timeout=0.4,
        resets_seen=resets,
        fault_interval=0,
        seconds=60,
    )
    cut = Fault(at=CUT_AT, kind="cut", node=1, seconds=1e6, amount=0.5, links=tuple(links))
    world = World(seed, knobs, [cut], Trace())
    world.start()
    world.queue.run_until(CUT_AT)
    assert world.leader(world.groups[0]) is not None
    world.queue.run_until(CUT_AT + LEADER_SECONDS)
    return world


def works_in_peace(world: World) -> None:
    """There is a leader that commits what comes, and nobody campaigns."""
    (group,) = world.groups
    epoch, committed = progress(world)
    world.queue.run_until(world.queue.now + QUIET_SECONDS)
    assert world.leader(group) is not None
    assert progress(world)[0] == epoch, "no peace"
    assert progress(world)[1] > committed, "nothing is committed"


def progress(world: World) -> tuple[int, int]:
    """The newest epoch that anybody has led, and up to where anything is committed."""
    judge = world.watch.groups[world.groups[0].key]
    return judge.elections.epoch_max, judge.committed.end_offset


@pytest.mark.parametrize("cut", range(64))
def test_any_two_of_three_that_hear_each_other_work(cut: int) -> None:
    links = [link for bit, link in enumerate(LINKS) if cut >> bit & 1]
    pairs = [p for p in combinations((1, 2, 3), 2) if not {p, (p[1], p[0])} & {*links}]
    if pairs:
        works_in_peace(cut_off(links, nodes=3, seed=cut, resets=cut % 2))


@pytest.mark.parametrize("seed", range(4))
def test_who_alone_hears_a_majority_of_five_leads(seed: int) -> None:
    world = cut_off(STAR, nodes=5, seed=seed, resets=seed % 2)
    works_in_peace(world)
    leader = world.leader(world.groups[0])
    assert leader is not None
    assert leader.node_id == NodeId(HUB)
