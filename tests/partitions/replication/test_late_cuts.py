"""Logs that are to be cut, or to begin anew, while the process has no descriptors left."""

import errno
import os
from collections.abc import Callable

import pytest

from tests.partitions.replication.cluster import KEY, Broker, Cluster, three
from tidemark.partitions.raft.messages import AppendRequest, ResetRequest
from tidemark.partitions.replication.group_log import GroupLog
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.refusals import NotRecorded
from tidemark.protocol.types import BytesLike, Offset
from tidemark.testing.memory_files import MemoryFiles


class Descriptors:
    """While there are none, no directory can be synced and no file opened."""

    def __init__(self, files: MemoryFiles) -> None:
        self.are_left = True
        self._open, self._sync_directory = files.open, files.sync_directory
        files.open = self._open_if_left  # type: ignore[method-assign]  # a limit of the process
        files.sync_directory = self._sync_if_left  # type: ignore[method-assign]  # and here

    def _open_if_left(self, path: str) -> File:
        self._need_one(path)
        return self._open(path)

    def _sync_if_left(self, path: str) -> None:
        self._need_one(path)
        self._sync_directory(path)

    def _need_one(self, path: str) -> None:
        if not self.are_left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)


def diverged(*, flush_commit: bool) -> Cluster:
    """The second broker's log ends with what nobody else has, and it is about to hear of it."""
    cluster = three(flush_commit=flush_commit)
    cluster[2].append("a")
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3), (1, 2), (3, 2)}
    cluster[2].append("lost", "and lost")
    cluster.run(3)
    (leader,) = [cluster[n] for n in (1, 3) if cluster[n].replica().is_serving]
    leader.append("b")
    cluster.run(0.3)
    return cluster


def left_behind(*, flush_commit: bool) -> Cluster:
    """The others' logs begin where the second broker's has nothing yet."""
    cluster = three(flush_commit=flush_commit)
    cluster[2].append("a")
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3), (1, 2), (3, 2)}
    cluster.run(3)
    (leader,) = [cluster[n] for n in (1, 3) if cluster[n].replica().is_serving]
    leader.append("gone")
    leader.append("b")
    cluster.run(0.3)
    leader.replica().move_log_start(Offset(2))
    cluster.run(0.3)
    return cluster


Story = Callable[..., Cluster]
both_cuts = pytest.mark.parametrize("story", [diverged, left_behind])
both_flushes = pytest.mark.parametrize("flush_commit", [True, False])


def values_in_the_end(story: Story) -> list[str]:
    return ["a", "b"] if story is diverged else ["b"]


def without_descriptors(cluster: Cluster) -> tuple[Broker, Descriptors]:
    """It hears what is to be done, and cannot do it."""
    broker = cluster[2]
    descriptors = Descriptors(broker.files)
    descriptors.are_left = False
    cluster.cut = set()
    cluster.run(1.5)
    assert broker.replica().is_held
    assert any("cannot be cut now" in warning for warning in broker.warnings)
    return broker, descriptors


@both_flushes
@both_cuts
def test_a_log_that_cannot_be_cut_for_want_of_descriptors_is_cut_once_there_are_some(
    story: Story, flush_commit: bool
) -> None:
    cluster = story(flush_commit=flush_commit)
    broker, descriptors = without_descriptors(cluster)
    cluster.run(5)
    assert broker.replica().failure is None
    assert broker.node.held == 1, "the journal has what the files do not have yet"
    descriptors.are_left = True
    cluster.run(3)
    assert broker.node.held == 0
    assert broker.committed_values() == values_in_the_end(story)
    cluster.leader().append("c")
    cluster.run(0.3)
    assert broker.committed_values() == [*values_in_the_end(story), "c"]
    back = cluster.start(2, *cluster.kill(2))
    back.open([1, 2, 3], flush_commit=flush_commit)
    assert back.values() == [*values_in_the_end(story), "c"]


@both_flushes
@both_cuts
def test_a_process_that_dies_before_its_log_could_be_cut_leaves_it_to_the_next(
    story: Story, flush_commit: bool
) -> None:
    cluster = story(flush_commit=flush_commit)
    without_descriptors(cluster)
    cluster.start(2, *cluster.kill(2)).open([1, 2, 3], flush_commit=flush_commit)
    cluster.run(3)
    assert cluster[2].committed_values() == values_in_the_end(story)


@both_cuts
def test_who_is_elected_while_a_log_cannot_be_cut_is_followed_afterwards(story: Story) -> None:
    cluster = story(flush_commit=True)
    broker, descriptors = without_descriptors(cluster)
    cluster.leader().replica().tell(lambda group: group.step_down())
    cluster.run(3)
    leader = cluster.leader()
    leader.append("c")
    cluster.run(0.3)
    descriptors.are_left = True
    cluster.run(3)
    assert broker.replica().leader == leader.node_id
    assert broker.committed_values() == [*values_in_the_end(story), "c"]


def test_what_a_group_is_told_while_its_log_cannot_be_cut_it_hears_once_it_is() -> None:
    cluster = diverged(flush_commit=True)
    broker, descriptors = without_descriptors(cluster)
    heard: list[Offset] = []
    broker.replica().tell(lambda group: heard.append(group.shape.end_offset))
    cluster.run(2)
    assert heard == []
    descriptors.are_left = True
    cluster.run(3)
    assert heard == [1]


def test_a_replica_that_is_given_up_before_it_could_be_cut_keeps_no_checkpoint_waiting() -> None:
    broker, _ = without_descriptors(diverged(flush_commit=True))
    broker.node.remove(KEY, is_deleted=True)
    assert broker.node.can_checkpoint


@pytest.mark.parametrize("refusal", [OSError(errno.EMFILE, "no descriptor"), NotRecorded("full")])
def test_what_follows_from_a_cut_is_done_again_where_it_was_not_done_to_its_end(
    monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    """The files are cut, and what the log says of producers cannot be read again."""
    cluster = diverged(flush_commit=True)
    broker = cluster[2]
    observe, refused = Log.observe, list[Offset]()

    def refuse(log: Log, **state: object) -> None:
        if log is broker.replica().log and not refused:
            refused.append(log.end_offset)
            raise refusal
        observe(log, **state)  # type: ignore[arg-type]  # as it was asked for

    monkeypatch.setattr(Log, "observe", refuse)
    cluster.cut = set()
    cluster.run(4)
    assert refused == [1], "the cut was done before"
    assert broker.committed_values() == ["a", "b"]
    assert not broker.replica()._store.producers.is_stale


def test_a_log_that_is_refused_for_another_reason_fails_as_it_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = diverged(flush_commit=True)

    def refuse(store: GroupLog, ready: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(GroupLog, "cut", refuse)
    cluster.cut = set()
    cluster.run(1)
    assert "Start the broker again" in (cluster[2].replica().failure or "")
    assert cluster[2].node.can_checkpoint


def test_what_could_not_be_written_behind_a_cut_is_not_in_the_journal_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another leader's entries come in their place, and a redo must not find both."""
    cluster = diverged(flush_commit=True)
    broker, (leader,) = cluster[2], [cluster[n] for n in (1, 3) if cluster[n].replica().is_serving]
    append, victim = Log.append, broker.replica().log

    def refuse(log: Log, data: BytesLike) -> Offset:
        if log is victim:
            raise OSError(errno.ENOSPC, "no room")
        return append(log, data)

    source, behind = leader.replica(), broker.replica().committed
    entries = source._read(behind, source.group.shape.last, 1 << 20)
    assert len(entries) == 2
    request = AppendRequest(source.epoch, behind, entries, source.committed)
    with monkeypatch.context() as full:
        full.setattr(Log, "append", refuse)
        broker.node.receive(leader.node_id, GroupMessage(KEY, request), cluster.now)
        cluster.turn(broker)
        cluster.turn(broker)
    assert "no room" in (broker.replica().failure or "")
    rows = broker.replica().group.shape.rows
    assert rows[-1].epoch < source.epoch
    back = cluster.start(2, *cluster.kill(2))
    assert back.open([1, 2, 3]).group.shape.rows == rows
    cluster.cut = set()
    cluster.run(3)
    assert back.committed_values() == ["a", "b"]


def test_a_log_that_begins_anew_and_finds_no_room_has_committed_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = left_behind(flush_commit=True)
    broker, (leader,) = cluster[2], [cluster[n] for n in (1, 3) if cluster[n].replica().is_serving]
    log, source = broker.replica().log, leader.replica()
    shape, append = source.group.shape, Log.append

    def refuse(each: Log, data: BytesLike) -> Offset:
        if each is log:
            raise OSError(errno.ENOSPC, "no room")
        return append(each, data)

    start = shape.start
    reset = ResetRequest(source.epoch, start, shape.rows_up_to(start), b"", source.committed)
    entries = source._read(start, shape.last, 1 << 20)
    request = AppendRequest(source.epoch, start, entries, source.committed)
    with monkeypatch.context() as full:
        full.setattr(Log, "append", refuse)
        for message in (reset, request):
            broker.node.receive(leader.node_id, GroupMessage(KEY, message), cluster.now)
        cluster.turn(broker)
        cluster.turn(broker)
    assert "no room" in (broker.replica().failure or "")
    assert broker.replica().log_start == broker.replica().high_watermark == start.offset
    cluster.cut = set()
    cluster.run(3)
    assert broker.committed_values() == ["b"]
