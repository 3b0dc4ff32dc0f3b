"""Who leads, by the leaders' own word."""

from uuid import UUID

import pytest

from tidemark.partitions.replication.known_leaders import NOT_KNOWN, KnownLeaders
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
    assert known.leads_no_more(A, KEY, Epoch(1))
    assert known.hear(A, beat(2))
    assert not known.leads_no_more(A, KEY, Epoch(2))


@pytest.mark.parametrize("leads", [True, False])
def test_nobody_leads_an_epoch_after_which_one_had_a_leader(leads: bool) -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    known.hear(A, beat(2, leads=leads))
    assert known.leads_no_more(A, KEY, Epoch(1))
    assert known.leads_no_more(B, KEY, Epoch(1))
    assert not known.leads_no_more(A, KEY, Epoch(3))
    assert not known.leads_no_more(B, KEY, Epoch(2))


def test_hearing_the_same_again_is_no_change() -> None:
    known = KnownLeaders()
    assert known.hear(A, beat(1))
    assert not known.hear(A, beat(1))


def test_a_process_that_is_gone_leads_nothing() -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    assert known.forget_process(A) == [KEY]
    assert list(known.led_by(A)) == []
    assert known.leads_no_more(A, KEY, Epoch(1))


def test_what_is_gone_is_forgotten_once_it_was_gone_before() -> None:
    known = KnownLeaders()
    known.hear(A, beat(1))
    known.forget_gone([KEY], lambda key, leader: (key, leader.node) == (KEY, A))
    assert known.get(KEY).leads
    known.forget_gone([KEY], lambda key, leader: False)
    known.forget_gone([KEY], lambda key, leader: True)
    assert known.get(KEY).leads
    known.forget_gone([KEY], lambda key, leader: True)
    assert known.get(KEY) == NOT_KNOWN


def test_what_was_forgotten_and_heard_of_again_is_gone_for_the_first_time() -> None:
    known = KnownLeaders()
    for forget in (known.remove, lambda key: known.forget_gone([key], lambda *_: True)):
        known.hear(A, beat(1))
        known.forget_gone([KEY], lambda *_: True)
        forget(KEY)
        assert known.heard_of() == []
        known.hear(A, beat(1))
        known.forget_gone([KEY], lambda *_: True)
        assert known.heard_of() == [KEY]
        known.remove(KEY)
