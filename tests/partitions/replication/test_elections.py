"""The queue of groups without a leader: ordered, jittered, paced."""

from itertools import pairwise
from random import Random
from uuid import UUID

import pytest

from tidemark.partitions.replication.elections import ElectionQueue, Priority
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey

TIMING = Timing(
    election_jitter_seconds=0.1,
    election_rank_seconds=1.0,
    campaigns_at_once=2,
    campaign_timeout_seconds=5.0,
)
KEYS = [PartitionKey(UUID(int=n), 0) for n in range(6)]


def queue() -> ElectionQueue:
    return ElectionQueue(TIMING, Random(1))


def add(elections: ElectionQueue, number: int, *, rank: int = 0, priority: int = 2) -> None:
    elections.add(KEYS[number], 10.0, priority=Priority(priority), rank=rank)


def test_a_group_waits_for_its_jitter_and_for_each_voter_before_it() -> None:
    elections = queue()
    add(elections, 0)
    add(elections, 1, rank=1)
    assert elections.take_due(10.0) == []
    assert 10.0 < elections.next_deadline() <= 10.1
    assert elections.take_due(10.1) == [KEYS[0]]
    assert elections.take_due(10.99) == []
    assert elections.take_due(11.1) == [KEYS[1]]


@pytest.mark.parametrize("slowness_seconds", [0.5, 2.0, 4.0])
def test_where_confirmations_take_long_voters_stand_further_apart(slowness_seconds: float) -> None:
    elections = queue()
    elections.slowness_seconds = slowness_seconds
    add(elections, 0, rank=2)
    assert 0 <= elections.next_deadline() - (10.0 + 2 * (1.0 + 2 * slowness_seconds)) <= 0.1


def test_no_voter_waits_longer_for_one_before_it_than_a_candidate_for_its_next_turn() -> None:
    """Who has just confirmed what was sent an hour ago is slow by an hour."""
    elections = queue()
    elections.slowness_seconds = 3600.0
    add(elections, 0, rank=2)
    assert elections.next_deadline() <= 10.1 + 2 * (1.0 + TIMING.campaign_wait_max_seconds)


def test_and_it_does_not_stand_before_the_voters_have_read_what_they_were_sent() -> None:
    """However soon its turn has come: answers to the one before it may be on their way."""
    elections = queue()
    elections.slowness_seconds = 3600.0
    add(elections, 0, rank=1)
    assert elections.take_due(30.0, lambda key, since: False) == []
    assert elections.take_due(31.0) == [KEYS[0]]


def test_a_voter_leaves_groups_to_the_one_before_it_as_long_as_that_is_at_work() -> None:
    elections = queue()
    for number in range(4):
        add(elections, number, rank=1)
    elections.remove(KEYS[0], 10.9)
    assert elections.take_due(11.1) == []
    elections.remove(KEYS[1], 11.9)
    assert elections.take_due(12.3) == []
    assert 12.9 < elections.next_deadline() <= 13.4
    assert len(elections.take_due(13.4)) == 2, "nobody has been elected for a while"


def test_but_not_for_ever_and_not_for_what_goes_before() -> None:
    elections, now = queue(), 10.0
    add(elections, 0, rank=1, priority=0)
    add(elections, 1, rank=1)
    taken = dict[PartitionKey, float]()
    while len(taken) < 2 and now < 30:
        now += 0.5
        add(elections, 2, rank=1)
        elections.remove(KEYS[2], now)
        for key in elections.take_due(now):
            taken.setdefault(key, now)
    assert list(taken) == KEYS[:2]
    assert taken[KEYS[0]] <= 11.5
    assert 18 < taken[KEYS[1]] < 25


def test_a_groups_first_candidate_does_not_wait() -> None:
    elections = queue()
    elections.add(KEYS[0], 10.0, priority=Priority.REST, rank=0, is_first=True)
    elections.add(KEYS[1], 10.0, priority=Priority.REST, rank=1, is_first=True)
    assert elections.take_due(10.0) == [KEYS[0]]
    assert elections.next_deadline() > 11.0


def test_the_clusters_metadata_goes_first() -> None:
    elections = queue()
    for number, priority in enumerate([2, 1, 0]):
        add(elections, number, priority=priority)
    assert elections.take_due(11.0) == [KEYS[2], KEYS[1]]


def test_only_so_many_campaign_at_once() -> None:
    elections = queue()
    for number in range(4):
        add(elections, number)
    first = elections.take_due(11.0)
    assert len(first) == 2
    assert elections.take_due(11.0) == []
    elections.remove(first[0], 11.0)
    assert elections.next_deadline() <= 11.0
    assert len(elections.take_due(11.0)) == 1


def test_who_was_not_elected_tries_again() -> None:
    elections = queue()
    add(elections, 0)
    elections.take_due(11.0)
    assert elections.next_deadline() == 16.0
    assert elections.take_due(15.9) == []
    assert elections.take_due(16.0) == []  # a pause first
    assert elections.take_due(16 + 3 + 0.2) == [KEYS[0]]


def test_who_is_not_elected_again_and_again_does_not_keep_time() -> None:
    elections, now, waits = queue(), 11.0, list[float]()
    add(elections, 0)
    for _ in range(6):
        while not elections.take_due(now):
            now += 0.5
        waits.append(now)
    between = [after - before for before, after in pairwise(waits)]
    assert all(5 <= wait < 5 + 3 + 16 * 0.1 + 0.5 for wait in between)
    assert len(set(between)) > 1


def test_a_group_that_another_stands_for_waits_for_what_becomes_of_it() -> None:
    elections = queue()
    add(elections, 0)
    elections.take_due(11.0)
    assert elections.leave_to_another(KEYS[0], 12.0)
    assert elections.take_due(16.9) == []
    elections.take_due(17.2, lambda key, since: since < 12.0)
    assert KEYS[0] in elections, "the other one may yet be answered"
    assert elections.take_due(19.0, lambda key, since: since <= 12.0) == [KEYS[0]]


def test_who_stands_again_and_again_in_vain_is_not_waited_for() -> None:
    elections = queue()
    add(elections, 0)
    left = [elections.leave_to_another(KEYS[0], 11.0 + n) for n in range(20)]
    assert left == sorted(left, reverse=True)
    assert 0 < sum(left) < 10
    assert elections.take_due(11 + 10 + 5.2) == [KEYS[0]]


def test_a_voter_that_comes_to_life_is_asked_soon() -> None:
    elections, now = queue(), 11.0
    add(elections, 0)
    for _ in range(4):
        while not elections.take_due(now):
            now += 0.1
    elections.take_due(now + 5)
    elections.hurry(now + 5)
    assert elections.next_deadline() <= now + 5.1
    assert elections.take_due(now + 5.1) == [KEYS[0]]


def test_a_group_with_a_leader_does_not_campaign() -> None:
    elections = queue()
    add(elections, 0)
    elections.remove(KEYS[0], 11.0)
    assert elections.take_due(20.0) == []
    assert elections.next_deadline() == float("inf")


def test_a_group_that_is_here_keeps_its_turn() -> None:
    elections = queue()
    add(elections, 0)
    elections.add(KEYS[0], 15.0, priority=Priority.REST, rank=0)
    assert elections.take_due(10.1) == [KEYS[0]]
    add(elections, 0)  # while it campaigns
    assert len(elections) == 1


def test_groups_that_come_and_go_leave_nothing_behind() -> None:
    elections = queue()
    for _ in range(1000):
        add(elections, 0)
        elections.remove(KEYS[0], 11.0)
    add(elections, 1)
    assert elections.take_due(10.1) == [KEYS[1]]


def in_vain(elections: ElectionQueue, until: float) -> float:
    """Campaign in vain for a while; when the next campaign is."""
    while elections.next_deadline() < until:
        elections.take_due(elections.next_deadline())
    return elections.next_deadline()


def test_a_leader_that_does_not_last_does_not_bring_candidates_together_again() -> None:
    """What kept them apart is kept: else two that depose each other would go on for ever."""
    waits = []
    for calm_seconds in (1.0, 10.0):
        elections = queue()
        add(elections, 0, rank=1)
        now = in_vain(elections, 200.0)
        elections.remove(KEYS[0], now)
        now += calm_seconds
        elections.add(KEYS[0], now, priority=Priority.REST, rank=1)
        waited = 0.0
        while not elections.take_due(now + waited):
            waited += 0.1
        waits.append(waited)
    assert waits[0] > 8.0
    assert waits[1] < 1.2


def test_what_was_in_vain_long_ago_is_forgotten() -> None:
    elections = queue()
    for number in range(6):
        add(elections, number)
        elections.remove(KEYS[number], in_vain(elections, 100.0 * (number + 1)))
    assert len(elections._calmed) == 1
