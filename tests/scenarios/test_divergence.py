"""Where two histories part: the table of KIP-279 and its like, one schedule each.

A log is written as its epochs' starts and its end: `"0:0 2:3 | 5"` has epoch 0 from offset 0, epoch
2 from 3, and ends at 5.
"""

from __future__ import annotations

import pytest

from tests.scenarios.cluster import Cluster, at
from tests.scenarios.disk import Disk, Image
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import AppendResponse, HardState
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

_VOTERS = Configuration((NodeId(1), NodeId(2), NodeId(3)))


def _image(log: str) -> Image:
    starts, _, end = log.partition("|")
    rows = [
        EpochStart(Epoch(int(epoch)), Offset(int(start)), NodeId(1), _VOTERS)
        for epoch, _, start in (word.partition(":") for word in starts.split())
    ]
    image = Image(rows=rows, first_config=_VOTERS)
    ends = [*(row.start_offset for row in rows[1:]), Offset(int(end))]
    for row, row_end in zip(rows, ends, strict=False):
        image.records += [(row.epoch, row.epoch * 16 + o) for o in range(row.start_offset, row_end)]
    image.hard_state = HardState(Epoch(40), None)
    return image


CASES = [
    # leader, follower, where they part, refusals until that is found
    ("the same", "0:0 | 3", "0:0 | 3", at(0, 3), 0),
    ("a follower that is behind in the same epoch", "0:0 | 5", "0:0 | 2", at(0, 2), 1),
    ("a follower with nothing", "0:0 1:2 | 5", "| 0", at(-1, 0), 1),
    ("a tail of the same epoch that the leader lacks", "0:0 | 2", "0:0 | 5", at(0, 2), 0),
    ("an epoch that only the leader has", "0:0 1:2 | 5", "0:0 | 2", at(0, 2), 1),
    ("an epoch that only the follower has", "0:0 2:3 | 5", "0:0 1:2 | 4", at(0, 2), 2),
    ("one epoch ends earlier at the follower", "0:0 1:4 | 6", "0:0 | 3", at(0, 3), 1),
    ("one epoch ends later at the follower", "0:0 2:3 | 6", "0:0 1:4 | 6", at(0, 3), 2),
    ("epochs that take turns", "0:0 2:2 4:4 6:6 | 8", "0:0 1:2 3:4 5:6 | 8", at(0, 2), 4),
    ("a fast double failover (KIP-279)", "0:0 1:5 3:6 | 8", "0:0 2:5 | 7", at(0, 5), 2),
    ("epochs without a record", "0:0 1:2 2:2 3:2 | 2", "0:0 1:2 | 2", at(1, 2), 1),
    ("the same offset under another epoch", "0:0 1:0 3:0 | 3", "0:0 2:0 | 3", at(0, 0), 2),
    ("only empty epochs, and others", "1:0 3:0 | 0", "0:0 2:0 | 0", at(-1, 0), 2),
]


@pytest.mark.parametrize(
    ("leader", "follower", "common", "refusals"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
@pytest.mark.parametrize("append_bytes_max", [1, 1000])
def test_logs_that_part_become_one(
    leader: str, follower: str, common: Position, refusals: int, append_bytes_max: int
) -> None:
    """One refusal for each epoch that diverges, and nothing is cut that need not be."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=append_bytes_max))
    for node, log in [(1, leader), (2, follower), (3, "| 0")]:
        image = _image(log)
        cluster.crash(node)
        cluster.down[node] = image
        cluster.restart(node)
    cluster.messages.clear()
    cluster.win(1, {1, 3})
    cluster.take(to=3)
    cluster.crash(3)
    refused, shortest = 0, cluster[2].group.shape.last
    while cluster.messages:
        for envelope in cluster.take():
            message = envelope.message
            refused += isinstance(message, AppendResponse) and message.match is None
            cluster.deliver(envelope)
            shortest = min([shortest, *_truncations(cluster[2].disk)])
            for replica in cluster.nodes.values():
                replica.persist()
    assert cluster[2].group.shape.last == cluster[1].group.shape.last
    assert cluster[2].log == cluster[1].log
    assert [r.epoch for r in cluster[2].disk.written.rows] == [
        r.epoch for r in cluster[1].disk.written.rows
    ]
    assert refused <= refusals
    assert shortest == common


def _truncations(disk: Disk) -> list[Position]:
    return [op for op in disk.unsynced if isinstance(op, Position)]
