"""What a replica begins with, and the bookkeeping of what is durable."""

from __future__ import annotations

from tests.partitions.raft.rows import ONE, at, row
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.marks import collecting, mark
from tidemark.partitions.raft.messages import AppendRequest, HardState, ResetRequest
from tidemark.protocol.types import Epoch, NodeId, Offset


class Everybody:
    def is_alive(self, node: NodeId) -> bool:
        return True


def open_group(
    hard_state: HardState, committed: int = 0, *, start: int = 0, config: Configuration = ONE
) -> Group:
    """Node 1, with a log of epoch 4 from 0 to 10."""
    return Group(
        node_id=NodeId(1),
        shape=LogShape([row(4, 0)], start_offset=Offset(start), end_offset=Offset(10), config=ONE),
        hard_state=hard_state,
        committed=Offset(committed),
        read=lambda after, up_to, bytes_max: (),
        peers=Everybody(),
        limits=Limits(),
    )


def test_what_is_found_on_disk_is_durable() -> None:
    group = open_group(HardState(Epoch(5), NodeId(2)), 7)
    assert (group.epoch, group.voted_for) == (5, 2)
    assert (group.durable, group.committed) == (at(4, 10), at(4, 7))
    assert not group.has_ready


def test_a_log_that_is_ahead_of_the_vote_has_the_epoch() -> None:
    """The epoch's start was durable, and the hard state before it was not."""
    group = open_group(HardState(Epoch(3), NodeId(2)))
    assert (group.epoch, group.voted_for) == (4, None)


def test_what_is_below_the_log_start_is_committed() -> None:
    assert open_group(HardState(Epoch(4), None), 0, start=6).high_watermark == 6


def test_committed_is_never_beyond_the_log() -> None:
    assert open_group(HardState(Epoch(4), None), 99).committed == at(4, 10)


def test_a_token_stands_for_all_that_was_to_be_written_until_then() -> None:
    group = open_group(HardState(Epoch(4), None))
    group.campaign()
    group.persisted(group.take_ready().token)
    assert group.is_leader
    start = group.take_ready()
    group.appended(Offset(12))
    first = group.take_ready()
    group.appended(Offset(15))
    second = group.take_ready()
    assert start.token < first.token < second.token
    group.persisted(first.token)
    assert group.durable == at(5, 12)
    group.persisted(second.token)
    assert (group.durable, group.high_watermark) == (at(5, 15), 15)
    group.persisted(first.token)
    assert group.durable == at(5, 15)


def test_a_ready_without_anything_to_write_has_no_token() -> None:
    group = open_group(HardState(Epoch(4), None), config=ONE)
    group.heard_leader(NodeId(2), Epoch(4), at(4, 3))
    ready = group.take_ready()
    assert ready.token == 0
    assert ready.committed == at(4, 3)
    assert ready.leadership is not None
    assert not group.has_ready


def test_marks_count_while_somebody_collects() -> None:
    mark("nobody collects")
    with collecting() as outer:
        mark("a")
        with collecting() as inner:
            mark("b")
        mark("a")
    assert (outer, inner) == ({"a": 2}, {"b": 1})


def test_a_new_beginning_comes_after_what_was_to_be_written_before_it() -> None:
    group = open_group(HardState(Epoch(5), None))
    start = row(5, 10)
    group.receive(NodeId(2), AppendRequest(Epoch(5), at(4, 10), (start,), at(4, 7)))
    table = (row(4, 0), start)
    group.receive(NodeId(2), ResetRequest(Epoch(5), at(5, 40), table, b"", at(5, 40)))
    first, second = group.take_ready(), group.take_ready()
    assert (first.entries, first.reset) == ((start,), None)
    assert second.reset is not None
    assert not second.entries
    assert group.shape.last == at(5, 40)
