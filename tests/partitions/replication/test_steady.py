"""Groups that are in step share their messages, and agree just as they would without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.partitions.replication.cluster import KEY, Broker, Cluster, batch_of
from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse
from tidemark.partitions.replication.checking import bytes_of
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.replication.peer_messages import (
    Heartbeat,
    PeerMessage,
    group_messages,
)
from tidemark.partitions.replication.steady_messages import SteadyAnswers, SteadyAppends
from tidemark.partitions.replication.steady_replica import RUN_BYTES_MAX
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.types import NodeId, Offset, TopicPartition

KEYS = tuple(PartitionKey(UUID(int=7), number) for number in range(3))


def opened(count: int = 3, *, has_lane: bool = True, **options: object) -> Cluster:
    """Brokers with three groups, all led by the first, and in step."""
    cluster = Cluster(count, has_lane=has_lane)
    for key in KEYS:
        partition = TopicPartition("orders", key.partition)
        voters = list(range(1, count + 1))
        cluster.open(voters, key=key, partition=partition, preference=voters, **options)
    cluster.run(1)
    for key in KEYS:
        append(cluster, key, "first")
    cluster.run(0.3)
    assert all(cluster.leader(key) is cluster[1] for key in KEYS)
    return cluster


def append(cluster: Cluster, key: PartitionKey, *values: str) -> None:
    records = batch_of(*values)
    assert isinstance(cluster[1].replica(key).append(check_batch(records), records, 0), Appended)


def of_kind(cluster: Cluster, kind: type[PeerMessage]) -> list[tuple[NodeId, PeerMessage]]:
    return [(to, message) for _, to, message in cluster.pool if isinstance(message, kind)]


def bytes_in(message: SteadyAppends) -> bytes:
    (records,) = message.records
    assert not isinstance(records, LogSlice)
    return bytes(records)


def deliver(cluster: Cluster) -> None:
    """What is in the pool arrives, and nothing comes of it yet."""
    pool, cluster.pool = cluster.pool, []
    for source, to, message in pool:
        cluster[to].node.receive(source, message, cluster.now)


def test_all_groups_of_a_turn_share_a_message_to_each_follower_and_one_answer() -> None:
    cluster = opened()
    for key in KEYS:
        append(cluster, key, "a")
    cluster.turn(cluster[1])
    sent = of_kind(cluster, SteadyAppends)
    assert [(to, len(message.rows)) for to, message in sent if isinstance(message, SteadyAppends)]
    assert [to for to, _ in sent] == [2, 3]
    deliver(cluster)
    cluster.turn(cluster[2])
    ((to, answers),) = of_kind(cluster, SteadyAnswers)
    assert isinstance(answers, SteadyAnswers)
    assert (to, len(answers.rows)) == (1, 3)
    cluster.run(0.3)
    for broker in cluster.brokers.values():
        assert [broker.committed_values(key) for key in KEYS] == [["first", "a"]] * 3


def test_a_follower_answers_once_what_it_took_is_durable() -> None:
    cluster = opened()
    cluster[2].is_disk_slow = True
    append(cluster, KEY, "a")
    cluster.turn(cluster[1])
    deliver(cluster)
    cluster.turn(cluster[2])
    assert cluster[2].values() == ["first", "a"]
    assert not of_kind(cluster, SteadyAnswers)
    cluster[2].sync()
    cluster.turn(cluster[2])
    assert len(of_kind(cluster, SteadyAnswers)) == 1


def test_a_leader_counts_itself_once_what_it_appended_is_durable() -> None:
    cluster = opened()
    cluster[1].is_disk_slow = True
    append(cluster, KEY, "a")
    cluster.cut |= {(3, 1)}
    cluster.settle()
    assert cluster[1].committed_values() == ["first"], "2 holds it, and nobody else for certain"
    cluster[1].sync()
    cluster.settle()
    assert cluster[1].committed_values() == ["first", "a"]


def test_a_replica_that_has_failed_answers_nothing_any_more() -> None:
    cluster = opened()
    cluster[2].is_disk_slow = True
    append(cluster, KEY, "a")
    cluster.turn(cluster[1])
    deliver(cluster)
    cluster.turn(cluster[2])
    cluster[2].replica().fail("it was told to")
    cluster[2].sync()
    cluster.turn(cluster[2])
    assert not of_kind(cluster, SteadyAnswers)


def test_a_run_that_is_not_what_its_row_says_is_refused() -> None:
    cluster = opened()
    append(cluster, KEY, "a")
    cluster.turn(cluster[1])
    ((_, message),) = [each for each in of_kind(cluster, SteadyAppends) if each[0] == 2]
    assert isinstance(message, SteadyAppends)
    garbled = bytearray(bytes_in(message))
    garbled[-1] ^= 1
    lie = SteadyAppends(message.rows, [bytes(garbled)])
    cluster[2].node.receive(NodeId(1), lie, cluster.now)
    shifted = SteadyAppends(
        [row._replace(end=Offset(row.end + 1)) for row in message.rows], message.records
    )
    cluster[2].node.receive(NodeId(1), shifted, cluster.now)
    cluster.turn(cluster[2])
    assert cluster[2].values() == ["first"]
    assert len(cluster[2].warnings) == 2


def test_a_large_run_goes_by_itself_and_from_its_file() -> None:
    cluster = opened()
    for broker in cluster.brokers.values():
        broker.replica()._store.journaled_bytes_max = 1_000
    append(cluster, KEY, "a" * 1_000)
    append(cluster, KEYS[1], "b")
    cluster.turn(cluster[1])
    sent = [message for to, message in of_kind(cluster, SteadyAppends) if to == 2]
    pieces = [message.records for message in sent if isinstance(message, SteadyAppends)]
    assert [len(each) for each in pieces] == [1, 1]
    assert sum(isinstance(each[0], LogSlice) for each in pieces) == 1
    cluster.run(0.3)
    assert cluster[3].committed_values() == ["first", "a" * 1_000]
    assert cluster[3].committed_values(KEYS[1]) == ["first", "b"]


def test_what_is_more_than_a_message_goes_in_several() -> None:
    cluster = opened()
    for letter in "ab":
        append(cluster, KEY, letter * RUN_BYTES_MAX)
    cluster.turn(cluster[1])
    sent = [message for to, message in of_kind(cluster, SteadyAppends) if to == 2]
    rows = [row for message in sent if isinstance(message, SteadyAppends) for row in message.rows]
    assert [(row.base, row.end) for row in rows] == [(1, 2), (2, 3)]
    cluster.run(0.3)
    values = [letter * RUN_BYTES_MAX for letter in "ab"]
    assert cluster[3].committed_values() == ["first", *values]


def test_a_batch_that_begins_earlier_is_not_sent_from_a_file() -> None:
    cluster = opened()
    append(cluster, KEY, "a", "b")
    store = cluster[1].replica()._store
    epoch = cluster[1].replica().epoch
    found = store.run_in_file(epoch, Offset(1), Offset(3), bytes_max=RUN_BYTES_MAX)
    assert found is not None
    assert store.run_in_file(epoch, Offset(2), Offset(3), bytes_max=RUN_BYTES_MAX) is None


@pytest.mark.parametrize("is_in_step", [True, False])
def test_what_is_kept_of_a_run_is_copied(is_in_step: bool) -> None:
    cluster = opened()
    if not is_in_step:
        append(cluster, KEY, "a")
        cluster.turn(cluster[1])
        early = of_kind(cluster, SteadyAppends)
    append(cluster, KEY, "b")
    cluster.turn(cluster[1])
    message = next(each for to, each in reversed(of_kind(cluster, SteadyAppends)) if to == 2)
    assert isinstance(message, SteadyAppends)
    buffer = bytearray(bytes_in(message))
    cluster.pool = []
    cluster[2].node.receive(
        NodeId(1), SteadyAppends(message.rows, [memoryview(buffer)]), cluster.now
    )
    buffer[:] = bytes(len(buffer))  # It is used again.
    if not is_in_step:
        cluster[2].node.receive(NodeId(1), early[0][1], cluster.now)
    cluster.turn(cluster[2])
    files, state = cluster.kill(2, Random(1))
    broker = cluster.start(2, files, state)
    assert broker.redone.damage == ()
    broker.open([1, 2, 3])
    assert broker.values() == ["first", *([] if is_in_step else ["a"]), "b"]


def test_a_run_larger_than_the_journal_takes_is_not_written_to_it() -> None:
    cluster = opened()
    for broker in (cluster[2], cluster[3]):
        broker.replica()._store.journaled_bytes_max = 10
    append(cluster, KEY, "a")
    cluster.turn(cluster[1])
    deliver(cluster)
    (output,) = [cluster[2].take()]
    assert output.syncs, "its file is synced instead"


def test_what_cannot_be_written_is_tried_again_as_on_the_long_way() -> None:
    cluster = opened()
    append(cluster, KEY, "a")
    cluster[2].files.capacity_bytes = 0
    cluster.settle()
    assert cluster[2].replica().failure is not None
    cluster[2].files.capacity_bytes = None
    cluster.run(3)
    assert cluster[2].committed_values() == ["first", "a"]


def test_a_replica_that_was_given_up_and_opened_again_is_found() -> None:
    cluster = opened()
    cluster[2].checkpoint()
    cluster[2].node.remove(KEY, is_deleted=False)
    cluster[2].open([1, 2, 3])
    append(cluster, KEY, "a")
    cluster.run(1)
    append(cluster, KEY, "b")
    cluster.turn(cluster[1])
    assert [to for to, _ in of_kind(cluster, SteadyAppends)] == [2, 3]
    deliver(cluster)
    assert cluster[2].values() == ["first", "a", "b"]


def test_one_broker_alone_commits_what_is_durable() -> None:
    cluster = opened(1)
    cluster[1].is_disk_slow = True
    append(cluster, KEY, "a")
    cluster.turn(cluster[1])
    assert cluster[1].committed_values() == ["first"]
    cluster[1].sync()
    cluster.turn(cluster[1])
    assert cluster[1].committed_values() == ["first", "a"]


# What heartbeats say of groups that are in step


def told_by_heartbeat(cluster: Cluster) -> list[NodeId]:
    """Whom the first broker's next heartbeats tell how far the group is committed."""
    cluster.now += cluster.timing.heartbeat_seconds
    cluster[1].node.tick(cluster.now)
    cluster.turn(cluster[1])
    return [
        to
        for source, to, message in cluster.pool
        if source == 1 and isinstance(message, Heartbeat)
        if any(beat.key == KEY for beat in message.groups)
    ]


def commit_and_send_more(cluster: Cluster) -> None:
    append(cluster, KEY, "a")
    cluster.settle()
    append(cluster, KEY, "b")
    cluster.turn(cluster[1])


def test_what_is_committed_is_told_with_the_next_entries_and_not_by_heartbeat() -> None:
    cluster = opened()
    commit_and_send_more(cluster)
    assert told_by_heartbeat(cluster) == []
    cluster.settle()
    assert told_by_heartbeat(cluster) == [2, 3], "there are no next entries"
    cluster.settle()
    assert cluster[3].committed_values() == ["first", "a", "b"]


def test_who_lacks_what_is_committed_hears_of_it_by_heartbeat() -> None:
    cluster = opened()
    cluster.cut |= {(1, 3)}
    commit_and_send_more(cluster)
    assert 3 in told_by_heartbeat(cluster)


def test_an_observer_hears_what_is_committed_by_heartbeat() -> None:
    cluster = opened()
    cluster[1].node.observers.set_observers(KEY, [NodeId(4)])
    commit_and_send_more(cluster)
    assert told_by_heartbeat(cluster) == [2, 3]


# Both ways

Action = Callable[[Cluster], object]
LARGE = 100
"""Records in a batch that is not written to the journal."""


def waits(cluster: Cluster) -> None:
    cluster.run(0.2)


def appends(number: int, size: int) -> Action:
    def act(cluster: Cluster) -> None:
        if cluster[1].replica(KEYS[number]).is_accepting:
            append(cluster, KEYS[number], *("x" * size))

    return act


def cuts(source: int, to: int) -> Action:
    return lambda cluster: cluster.cut.symmetric_difference_update({(source, to)})


def slows(node: int) -> Action:
    def act(cluster: Cluster) -> None:
        cluster[node].is_disk_slow = not cluster[node].is_disk_slow

    return act


def restarts(node: int) -> Action:
    def act(cluster: Cluster) -> None:
        syncs = cluster[node].replica().syncs_before_ack
        files, state = cluster.kill(node)
        broker = cluster.start(node, files, state)
        for key in KEYS:
            partition = TopicPartition("orders", key.partition)
            broker.open(
                [1, 2, 3],
                key=key,
                partition=partition,
                flush_commit=syncs,
                journaled_bytes_max=5 * LARGE,
            )

    return act


nodes = st.integers(1, 3)
actions = st.one_of(
    st.builds(appends, st.integers(0, 2), st.sampled_from([1, 2, 3, LARGE])),
    st.just(Cluster.step),
    st.just(waits),
    st.builds(cuts, nodes, nodes),
    st.builds(slows, nodes),
    st.builds(restarts, st.integers(2, 3)),
)


def seen(broker: Broker) -> list[object]:
    """What a broker's groups have come to."""
    found: list[object] = []
    for key in KEYS:
        replica = broker.replica(key)
        group = replica.group
        found += [replica.epoch, replica.leader, group.shape.last, replica.committed]
        found += [group.durable, replica.durable_end, group.progress(), broker.values(key)]
    return found


def said(cluster: Cluster) -> list[str]:
    """What groups say of their logs, row or not, in no order between groups."""
    return sorted(
        f"{source} to {to}: {message.key.partition} {_shown(message.message)}"
        for source, to, each in cluster.pool
        for message in group_messages([each])
    )


def _shown(message: object) -> str:
    if isinstance(message, AppendRequest):
        runs = [_bytes_of(entry).hex() for entry in message.entries if isinstance(entry, Run)]
        return f"{message.epoch} {message.prev} {message.committed} {runs}"
    if isinstance(message, AppendResponse):
        return repr(replace(message, life=0))  # which a row does not say
    return type(message).__name__


def _bytes_of(run: Run) -> bytes:
    return run.records.read() if isinstance(run.records, LogSlice) else bytes(bytes_of(run))


@pytest.mark.parametrize("flush_commit", [True, False])
def test_the_lane_changes_nothing_but_the_messages(flush_commit: bool) -> None:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(actions, max_size=25))
    # A row goes the long way to one that has been opened a moment ago.
    @example([restarts(2), waits, waits, restarts(2), appends(0, 1), waits])
    def check(script: list[Action]) -> None:
        options = {"flush_commit": flush_commit, "journaled_bytes_max": 5 * LARGE}
        ways = [opened(has_lane=each, **options) for each in (True, False)]
        for act in script:
            for cluster in ways:
                act(cluster)
                for broker in cluster.brokers.values():
                    cluster.turn(broker)
            short, long = ways
            for node in short.brokers:
                assert seen(short.brokers[node]) == seen(long.brokers[node])
            assert said(short) == said(long)

    check()
