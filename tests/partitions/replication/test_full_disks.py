"""Brokers without room: what their groups do meanwhile, and once there is some."""

import errno
from collections.abc import Sequence

import pytest

from tests.partitions.replication.cluster import KEY, three
from tidemark.partitions.raft.messages import AppendRequest
from tidemark.partitions.replication.peer_messages import (
    GroupMessage,
    Heartbeat,
)
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.room import Room
from tidemark.protocol.types import BytesLike, Offset


def test_a_follower_whose_disk_is_full_takes_part_again_when_there_is_room() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    cluster[3].files.capacity_bytes = 0
    cluster[2].append("b", "c")
    cluster.run(0.3)
    assert cluster[3].replica().failure is not None
    assert cluster[2].committed_values() == ["a", "b", "c"]
    assert cluster[3].values() == ["a"]
    cluster[3].files.capacity_bytes = None
    cluster.run(4)
    assert cluster[3].replica().failure is None
    assert cluster[3].committed_values() == ["a", "b", "c"]
    back = cluster.start(3, *cluster.kill(3))
    back.open([1, 2, 3])
    assert back.values() == ["a", "b", "c"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_takes_nothing_more_ends_the_broker_and_a_full_one_does_not(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    write, victim = Log._write, cluster[3].replica().log

    def refuse(
        log: Log, parts: Sequence[BytesLike], size_bytes: int, last: Offset, last_ms: int
    ) -> int:
        if log is victim:
            raise OSError(number, "not taken")
        return write(log, parts, size_bytes, last, last_ms)

    monkeypatch.setattr(Log, "_write", refuse)
    cluster[2].append("b")
    cluster.run(0.3)
    assert "not taken" in (cluster[3].replica().failure or "")
    failure = cluster[3].take().disk_failure
    assert failure is None if number == errno.ENOSPC else failure is not None


def test_after_a_full_disk_nothing_counts_that_was_not_synced_before() -> None:
    """A follower has taken in a batch, which waits for its sync, when there is no room for the
    next. The core that begins anew takes what it finds for durable: so it has to wait as well."""
    cluster = three()
    cluster[3].is_disk_slow = True
    cluster[2].append("a")
    cluster.settle()
    assert cluster[3].values() == ["a"]
    cluster[3].files.capacity_bytes = 0
    cluster[2].append("b", "c")
    cluster.settle()
    failed = cluster[3].replica()
    assert failed.log_end == 1
    assert failed.group.shape.end_offset == 1
    cluster[3].files.capacity_bytes = None
    cluster.run(3)
    assert failed.failure is not None
    assert failed.group.durable.offset == 0
    cluster[3].is_disk_slow = False
    cluster.run(10)  # the leader tries less and less often
    assert cluster[3].replica().failure is None
    assert cluster[3].committed_values() == ["a", "b", "c"]


def test_a_follower_whose_disk_is_nearly_full_takes_no_records_and_stays_a_voter() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    follower = cluster[3].replica()
    follower.log.room = room = Room(is_out=True, why="the disk is full")
    cluster[2].append("b", "c")
    cluster.run(20)
    assert cluster[2].committed_values() == ["a", "b", "c"]
    assert (follower.failure, cluster[3].values()) == (None, ["a"])
    # With its vote there is a leader; what that one commits waits for room.
    cluster.cut = {(2, 1), (1, 2), (2, 3), (3, 2)}
    cluster.run(5)
    assert cluster[1].replica().is_leader
    assert follower.leader == 1
    assert (follower.failure, cluster[3].values()) == (None, ["a"])
    room.is_out = False
    cluster.run(0.5)
    assert cluster[3].committed_values() == ["a", "b", "c"]
    assert cluster[1].replica().is_serving


def test_leaders_hear_at_once_that_their_followers_have_room_again() -> None:
    cluster = three()
    room = Room(is_out=True, why="the disk is full")
    for number in (1, 3):
        cluster[number].replica().log.room = room
    cluster[2].append("a")
    cluster.run(20)  # the leader tries less and less often
    assert cluster[2].committed_values() == []
    room.is_out = False
    cluster.run(0.3)
    assert cluster[2].committed_values() == ["a"]
    # That is over: when the disk is full again, and room again, it is so anew.
    room.is_out = True
    cluster[2].append("b")
    cluster.run(20)
    room.is_out = False
    cluster.run(0.3)
    assert cluster[2].committed_values() == ["a", "b"]


def test_a_follower_that_missed_nothing_while_its_disk_was_full_says_nothing_of_it() -> None:
    cluster = three()
    for number in (1, 3):
        cluster[number].replica().log.room = Room(is_out=True, why="the disk is full")
    cluster.run(3)
    for number in (1, 3):
        cluster[number].replica().log.room.is_out = False
        cluster[number].node.tick(cluster.now + 0.3)
        cluster.turn(cluster[number])
    assert cluster.pool
    assert all(isinstance(message, Heartbeat) for _, _, message in cluster.pool)


def test_a_replica_that_is_given_up_is_not_spoken_of_when_there_is_room() -> None:
    cluster = three()
    room = cluster[3].replica().log.room = Room(is_out=True, why="the disk is full")
    cluster[2].append("a")
    cluster.run(3)
    cluster[3].node.remove(KEY, is_deleted=False)
    room.is_out = False
    assert cluster[3].node.missed.take_back() == []


def test_what_a_full_disk_took_in_part_is_taken_back_whole() -> None:
    cluster = three()
    files = cluster[3].files
    files.capacity_bytes = 1 << 40
    files.capacity_bytes -= files.free_bytes() - 100_000
    for letter in "ab":
        cluster[2].append(letter * 80_000)
    cluster.settle()
    assert cluster[3].replica().failure is not None
    assert cluster[3].replica().log_end == 0
    files.capacity_bytes = None
    cluster.run(5)
    assert len(cluster[3].committed_values()) == 2


def test_of_one_message_that_a_full_disk_took_in_part_nothing_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The core that begins anew takes what the log has for what the journal has, too."""
    cluster = three()
    cluster.cut = {(2, 3), (3, 2), (1, 3), (3, 1)}
    follower = cluster[3].replica()
    held = follower.group.shape.last
    cluster[2].append("a")
    cluster.run(0.3)
    cluster[2].replica().tell(lambda group: group.step_down())
    cluster.run(2)
    leader = next(each for each in (cluster[1], cluster[2]) if each.replica().is_serving)
    leader.append("b")
    cluster.run(0.3)
    append, taken = Log.append, list[Offset]()

    def take_one(log: Log, data: BytesLike) -> Offset:
        if taken:
            raise OSError(errno.ENOSPC, "no room")
        taken.append(append(log, data))
        return taken[0]

    source = leader.replica()
    entries = source._read(held, source.group.shape.last, 1 << 20)
    assert len(entries) == 3
    request = AppendRequest(source.epoch, held, entries, source.committed)
    with monkeypatch.context() as full:
        full.setattr(Log, "append", take_one)
        cluster[3].node.receive(leader.node_id, GroupMessage(KEY, request), cluster.now)
        cluster.turn(cluster[3])
    assert taken == [1]
    assert "no room" in (follower.failure or "")
    assert follower.log_end == 0
    cluster.cut = set()
    cluster.run(3)
    assert cluster[3].committed_values() == ["a", "b"]


@pytest.mark.parametrize("crashes", [False, True])
def test_a_disk_that_is_full_right_behind_a_cut_is_written_to_once_there_is_room(
    monkeypatch: pytest.MonkeyPatch, crashes: bool
) -> None:
    """The journal has the cut and what follows it; the log has the cut."""
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    cluster.cut = {(2, 1), (1, 2), (2, 3), (3, 2)}
    cluster[2].append("lost")
    cluster.run(3)
    (leader,) = [b for b in (cluster[1], cluster[3]) if b.replica().is_serving]
    leader.append("b", "c")
    cluster.run(0.3)
    append, victim, is_full = Log.append, cluster[2].replica().log, True

    def refuse(log: Log, data: BytesLike) -> Offset:
        if log is victim and is_full:
            raise OSError(errno.ENOSPC, "no room")
        return append(log, data)

    monkeypatch.setattr(Log, "append", refuse)
    source, behind = leader.replica(), cluster[2].replica().committed
    entries = source._read(behind, source.group.shape.last, 1 << 20)
    assert len(entries) == 2
    request = AppendRequest(source.epoch, behind, entries, source.committed)
    cluster[2].node.receive(leader.node_id, GroupMessage(KEY, request), cluster.now)
    cluster.turn(cluster[2])
    cluster.turn(cluster[2])
    assert "no room" in (cluster[2].replica().failure or "")
    assert cluster[2].values() == ["a"]
    cluster.cut = set()
    if crashes:
        back = cluster.start(2, *cluster.kill(2))
        back.open([1, 2, 3])
    is_full = False
    cluster.run(10)
    assert cluster[2].replica().failure is None
    assert cluster[2].committed_values() == ["a", "b", "c"]
    back = cluster.start(2, *cluster.kill(2))
    back.open([1, 2, 3])
    assert back.values() == ["a", "b", "c"]
