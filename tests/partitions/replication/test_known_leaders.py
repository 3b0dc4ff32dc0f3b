"""Who leads, by the leaders' own word."""

from uuid import UUID

from tidemark.partitions.replication.known_leaders import KnownLeaders
from tidemark.partitions.replication.peer_messages import GroupBeat
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

A, B = NodeId(1), NodeId(2)
KEY = PartitionKey(UUID(int=7), 0)


def beat(epoch: int, *, leads: bool = True) -> GroupBeat:
    return GroupBeat(KEY, Epoch(epoch), leads, ORIGIN, Offset(0))


def test_a_newer_epoch_wins_and_an_older_one_is_not_heard() -> None:
    known = KnownLeaders()
    assert known.hear(A, beat(1))
    assert known.hear(B, beat(3))
    assert not known.hear(A, beat(2))
    assert known.get(KEY).node == B


def test_to_resign_is_final_within_an_epoch() -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    assert known.hear(A, beat(1, leads=False))
    assert not known.hear(A, beat(1))
    assert known.has_resigned(A, KEY, Epoch(1))
    assert known.hear(A, beat(2))
    assert not known.has_resigned(A, KEY, Epoch(2))


def test_who_has_resigned_leads_no_earlier_epoch_either() -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    known.hear(A, beat(2, leads=False))
    assert known.has_resigned(A, KEY, Epoch(1))
    assert not known.has_resigned(A, KEY, Epoch(3))
    assert not known.has_resigned(B, KEY, Epoch(1))


def test_hearing_the_same_again_is_no_change() -> None:
    known = KnownLeaders()
    assert known.hear(A, beat(1))
    assert not known.hear(A, beat(1))


def test_a_process_that_is_gone_leads_nothing() -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    assert known.forget_process(A) == [KEY]
    assert list(known.led_by(A)) == []
    assert known.has_resigned(A, KEY, Epoch(1))
