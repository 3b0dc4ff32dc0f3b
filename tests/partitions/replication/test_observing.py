"""Whom an observer asks, and when."""

from random import Random
from uuid import UUID

from tidemark.partitions.replication.observing import Pulls
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

KEY = PartitionKey(UUID(int=7), 0)
PARENTS = [NodeId(2), NodeId(3)]
TIMING = Timing(pull_seconds=1.0, pull_timeout_seconds=3.0)


def pulls(*alive: int) -> Pulls:
    peers = PeerTable(NodeId(1), failure_timeout_seconds=100.0)
    for node in alive:
        peers.heard(NodeId(node), 0.0)
        peers.confirmed(NodeId(node), 0.0, 0.0)
    found = Pulls(TIMING, peers, Random(1))
    found.observe(KEY, PARENTS)
    return found


def test_it_asks_at_once_and_then_now_and_then() -> None:
    asking = pulls(2)
    assert asking.take_due(10.0) == [(KEY, 2)]
    assert asking.take_due(10.0) == []
    asking.answered(KEY, NodeId(2), 10.1, is_more=False)
    assert asking.next_deadline() == 11.1
    assert asking.take_due(11.1) == [(KEY, 2)]


def test_it_goes_on_asking_while_there_is_more() -> None:
    asking = pulls(2)
    asking.take_due(10.0)
    asking.answered(KEY, NodeId(2), 10.1, is_more=True)
    assert asking.take_due(10.1) == [(KEY, 2)]


def test_it_asks_another_parent_when_one_does_not_answer() -> None:
    asking = pulls(2, 3)
    ((_, first),) = asking.take_due(10.0)
    assert asking.take_due(12.9) == []
    ((_, second),) = asking.take_due(13.0)
    assert {first, second} == {2, 3}
    asking.answered(KEY, first, 13.1, is_more=True)  # too late: nobody waits for it
    assert asking.take_due(13.1) == []


def test_it_asks_the_living_only() -> None:
    assert pulls(3).take_due(10.0) == [(KEY, 3)]
    assert pulls().take_due(10.0) == []


def test_it_hurries_when_it_hears_of_more_also_while_it_waits() -> None:
    asking = pulls(2)
    asking.take_due(10.0)
    asking.hurry(KEY)
    asking.answered(KEY, NodeId(2), 10.1, is_more=False)
    assert asking.take_due(10.1) == [(KEY, 2)]
    asking.answered(KEY, NodeId(2), 10.2, is_more=False)
    assert asking.take_due(10.3) == []
    asking.hurry(KEY)
    assert asking.take_due(10.3) == [(KEY, 2)]


def test_it_asks_again_when_the_connection_was_lost() -> None:
    asking = pulls(2, 3)
    ((_, parent),) = asking.take_due(10.0)
    asking.lost(NodeId(5 - parent), 10.1)
    assert asking.take_due(10.1) == []
    asking.lost(parent, 10.1)
    assert asking.take_due(10.1) == [(KEY, parent)]


def preferring(*preferred: int, alive: tuple[int, ...] = (2, 3)) -> Pulls:
    asking = pulls(*alive)
    asking.observe(KEY, PARENTS, preferred=tuple(map(NodeId, preferred)), is_told=True)
    return asking


def asked(asking: Pulls, now: float) -> int:
    ((_, parent),) = asking.take_due(now)
    return parent


def test_it_asks_whom_it_prefers_and_falls_back_when_that_one_does_not_answer() -> None:
    asking = preferring(3)
    assert asked(asking, 10.0) == 3
    assert asked(asking, 13.0) == 2
    asking.answered(KEY, NodeId(2), 13.1, is_more=True)
    assert asked(asking, 13.1) == 2
    asking.answered(KEY, NodeId(2), 13.2, is_more=True)
    assert asked(asking, 13.0 + TIMING.pull_shun_seconds) == 3, "it is tried again after a while"


def test_it_asks_another_when_its_parent_is_long_behind_the_leader() -> None:
    asking = preferring(3)
    now = 10.0
    parents = set()
    while now < 14.0:
        for _, parent in asking.take_due(now):
            parents.add(parent)
            asking.answered(KEY, parent, now, is_more=False, is_behind=parent == 3)
        now += 0.5
    assert parents == {3, 2}
    assert asking.parent(KEY) == 2


def test_a_parent_that_is_behind_for_a_moment_is_asked_again_soon() -> None:
    asking = preferring(3)
    assert asked(asking, 10.0) == 3
    asking.answered(KEY, NodeId(3), 10.0, is_more=False, is_behind=True)
    assert asking.next_deadline() == 10.0 + TIMING.pull_gap_seconds


def test_who_is_told_of_what_is_committed_asks_seldom() -> None:
    asking = preferring(3)
    asked(asking, 10.0)
    asking.answered(KEY, NodeId(3), 10.1, is_more=False)
    assert asking.next_deadline() == 10.1 + TIMING.pull_idle_seconds


def test_it_asks_no_more_often_than_the_gap_however_much_there_is() -> None:
    asking = preferring(3)
    asked(asking, 10.0)
    asking.answered(KEY, NodeId(3), 10.001, is_more=True)
    assert asking.next_deadline() == 10.0 + TIMING.pull_gap_seconds


def test_what_is_given_up_is_not_asked_for() -> None:
    asking = preferring(3)
    asking.remove(KEY)
    assert asking.next_deadline() == float("inf")
    assert asking.take_due(100.0) == []
