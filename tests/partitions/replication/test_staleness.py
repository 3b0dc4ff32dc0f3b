"""For how long a replica may have lacked what its leader has committed."""

from uuid import UUID

import pytest

from tidemark.partitions.replication.known_leaders import NOT_KNOWN, KnownLeader
from tidemark.partitions.replication.peer_messages import ObserverStanding
from tidemark.partitions.replication.staleness import Staleness
from tidemark.partitions.replication.standings import Reports, Standings
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

KEY = PartitionKey(UUID(int=7), 0)
LEADER = NodeId(1)


def at(offset: int) -> Position:
    return Position(Epoch(3), Offset(offset))


def known(offset: int) -> KnownLeader:
    return KnownLeader(LEADER, Epoch(3), True, at(offset), Offset(0))


def test_who_has_all_it_was_told_of_lacks_what_came_since_the_leader_was_heard() -> None:
    staleness = Staleness({LEADER: 100.0}.get)
    staleness.told(KEY, known(5), at(5), at(5), 99.0)
    assert staleness.seconds(KEY, known(5), at(5), 100.25) == 0.25


def test_who_is_behind_is_as_stale_as_the_last_time_it_had_all() -> None:
    spoken = {LEADER: 100.0}
    staleness = Staleness(spoken.get)
    staleness.told(KEY, known(3), at(5), at(3), 102.0)
    staleness.told(KEY, known(5), at(9), at(3), 103.0)
    spoken[LEADER] = 104.0
    assert staleness.seconds(KEY, known(9), at(3), 104.0) == 4.0
    staleness.reached(KEY, at(6))  # all that was committed at 102, not all of 103
    assert staleness.seconds(KEY, known(9), at(6), 104.0) == 2.0
    staleness.told(KEY, known(9), at(12), at(6), 104.0)
    staleness.reached(KEY, at(9))
    assert staleness.seconds(KEY, known(12), at(9), 104.5) == 1.5
    staleness.reached(KEY, at(12))
    assert staleness.seconds(KEY, known(12), at(12), 104.5) == 0.5


@pytest.mark.parametrize("before", [NOT_KNOWN, known(4)])
def test_who_was_behind_before_it_heard_anything_does_not_know_since_when(
    before: KnownLeader,
) -> None:
    spoken = {LEADER: 100.0}
    staleness = Staleness(spoken.get)
    staleness.told(KEY, before, at(5), at(3), 104.0)
    spoken[LEADER] = 104.0
    assert staleness.seconds(KEY, known(5), at(3), 104.0) is None
    staleness.told(KEY, known(5), at(9), at(3), 105.0)
    staleness.reached(KEY, at(4))
    assert staleness.seconds(KEY, known(9), at(4), 105.0) is None
    staleness.reached(KEY, at(5))
    assert staleness.seconds(KEY, known(9), at(5), 105.5) == 1.5


def test_without_a_leader_nothing_is_known() -> None:
    staleness = Staleness(lambda _: None)
    assert staleness.seconds(KEY, NOT_KNOWN, at(0), 1.0) is None


def test_a_leader_adds_the_age_of_a_report_only_where_more_was_committed_since() -> None:
    standings = Standings()
    standings.take(NodeId(4), ObserverStanding(KEY, at(5), 120, NodeId(2)), 10.0)
    standing = standings.of(KEY)[NodeId(4)]
    assert standing.staleness_at(12.0, at(5)) == 120
    assert standing.staleness_at(12.0, at(6)) == 2120
    standings.forget_node(NodeId(4))
    assert not standings.of(KEY)


def test_an_observer_reports_what_has_changed_and_again_while_it_is_stale() -> None:
    reports = Reports()
    fresh = ObserverStanding(KEY, at(5), 80, NodeId(2))
    assert reports.note_told(LEADER, 1, Epoch(3), fresh)
    assert not reports.note_told(LEADER, 1, Epoch(3), fresh)
    assert reports.note_told(LEADER, 1, Epoch(3), fresh._replace(committed=at(6)))
    again = fresh._replace(committed=at(6))
    assert reports.note_told(LEADER, 1, Epoch(4), again), "it has led, lost and won the lead"
    assert reports.note_told(
        LEADER, 2, Epoch(3), fresh._replace(committed=at(6))
    )  # another process of it
    assert reports.note_told(NodeId(3), 1, Epoch(3), fresh._replace(committed=at(6)))
    stale = fresh._replace(committed=at(6), staleness_ms=5_000)
    assert reports.note_told(NodeId(3), 1, Epoch(3), stale)
    assert reports.note_told(NodeId(3), 1, Epoch(3), stale)
    reports.lost(NodeId(3))
    assert reports.note_told(NodeId(3), 1, Epoch(3), fresh._replace(committed=at(6)))
