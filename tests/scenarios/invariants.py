"""What must hold after every step, whatever was lost, delayed or killed (Raft, figure 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.messages import AppendResponse, Ballot, VoteRequest, VoteResponse
from tidemark.partitions.raft.ready import Outgoing
from tidemark.protocol.types import Position

if TYPE_CHECKING:
    from tests.scenarios.cluster import Cluster, Node
    from tests.scenarios.disk import Image


class Invariants:
    """Remembers who has led and what was committed."""

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}  # by epoch
        # What was committed, and in which epoch first: offset -> (epoch of the record, its byte).
        self._committed: dict[int, tuple[int, int]] = {}
        self._commits: dict[Position, int] = {}
        self._high_watermarks: dict[int, tuple[int, Position]] = {}

    def check(self, cluster: Cluster) -> None:
        for node in cluster.nodes.values():
            self._shape_is_the_disk(node)
            self._one_leader_in_an_epoch(node)
            self._committed_is_forever(node)
        self._logs_match(cluster)

    def check_spoken(self, node: Node, out: Outgoing) -> None:
        """Persist before you speak."""
        durable, message = node.disk.durable, out.message
        match message:
            case AppendResponse(match=Position() as held):
                assert _has(durable, held), f"{node.id} acknowledges {held} too early"
                assert durable.hard_state.epoch >= message.epoch or durable.last.epoch == held.epoch
            case VoteResponse(granted=True) if message.ballot is not Ballot.PRE:
                assert durable.hard_state.epoch == message.epoch
                assert durable.hard_state.voted_for == out.to
            case VoteRequest() if message.ballot is not Ballot.PRE:
                assert durable.hard_state.epoch == message.epoch
                assert durable.hard_state.voted_for == node.id

    def _shape_is_the_disk(self, node: Node) -> None:
        group, image = node.group, node.disk.written
        assert group.shape.last == image.last
        assert [row.epoch for row in group.shape.rows] == [row.epoch for row in image.rows]
        assert group.durable <= group.shape.last
        assert group.committed <= group.shape.last

    def _one_leader_in_an_epoch(self, node: Node) -> None:
        group = node.group
        if not group.is_leader:
            return
        if group.epoch not in self._leaders:
            self._leaders[group.epoch] = node.id
            for position, epoch in self._commits.items():
                if epoch < group.epoch:  # leader completeness: of later epochs only
                    assert group.holds(position), f"{node.id} leads without {position}"
        assert self._leaders[group.epoch] == node.id, f"two leaders in {group.epoch}"

    def _committed_is_forever(self, node: Node) -> None:
        group, image = node.group, node.disk.written
        life, before = self._high_watermarks.get(node.id, (-1, group.committed))
        if life == node.life:
            assert group.committed >= before, f"the high watermark of {node.id} went back"
            if group.committed == before:
                return
        self._high_watermarks[node.id] = (node.life, group.committed)
        self._commits.setdefault(group.committed, group.epoch)
        start = image.start.offset
        for offset in range(start, group.high_watermark):
            record = image.records[offset - start]
            assert self._committed.setdefault(offset, record) == record, f"{offset} has changed"

    def _logs_match(self, cluster: Cluster) -> None:
        nodes = [*cluster.nodes.values()]
        for index, one in enumerate(nodes):
            for other in nodes[index + 1 :]:
                _check_matching(one.disk.written, other.disk.written)


def _check_matching(one: Image, other: Image) -> None:
    """Where two logs have an entry of one epoch at one place, they are the same up to it."""
    start = max(one.start.offset, other.start.offset)
    end = min(one.end_offset, other.end_offset)
    mine = one.records[start - one.start.offset : end - one.start.offset]
    theirs = other.records[start - other.start.offset : end - other.start.offset]
    agree = 0
    for index, (a, b) in enumerate(zip(mine, theirs, strict=False), start=1):
        if a[0] == b[0]:
            agree = index
    assert mine[:agree] == theirs[:agree], "logs differ before a common entry"


def _has(image: Image, position: Position) -> bool:
    if position.offset <= image.start.offset:
        return True
    return image.shape().contains(position) or position <= image.last
