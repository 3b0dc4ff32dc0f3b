"""A state machine on a group's log: at voters and at observers, through resets and restarts."""

from uuid import UUID

from tests.partitions.replication.cluster import KEY, TOPIC, Broker, Cluster
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.types import BytesLike, NodeId, Offset, Position

OTHER = PartitionKey(UUID(int=8), 0)


class Words:
    """The words that were committed, in order."""

    def __init__(self, applied: int = 0) -> None:
        self.applied = Offset(applied)
        self.words: list[str] = []

    def apply(self, header: BatchHeader, batch: BytesLike) -> None:
        assert header.base_offset == self.applied
        self.words += [r.value.decode() for r in decode_records(batch) if r.value is not None]
        self.applied = header.next_offset

    def snapshot_at(self, start: Offset) -> bytes:
        return " ".join(self.words[:start]).encode()

    def restore(self, snapshot: bytes, start: Position) -> None:
        self.words, self.applied = snapshot.decode().split(), start.offset


def cluster_of_words(count: int, voters: list[int]) -> tuple[Cluster, dict[int, Words]]:
    cluster, machines = Cluster(count), dict[int, Words]()
    for broker in cluster.brokers.values():
        machines[broker.node_id] = open_words(broker, voters)
    cluster.run(1)
    return cluster, machines


def open_words(broker: Broker, voters: list[int]) -> Words:
    words = Words()
    broker.open(voters, applier=words, is_eager=True, priority=Priority.CLUSTER, preference=voters)
    if broker.node_id not in voters:
        broker.node.observe(KEY, [NodeId(voter) for voter in voters])
    return words


def test_everybody_applies_what_is_committed_and_nothing_else() -> None:
    cluster, machines = cluster_of_words(4, [1, 2, 3])
    cluster[1].append("a", "b")
    assert machines[1].words == []
    cluster[1].append("c")
    cluster.run(0.2)
    assert [words.words for words in machines.values()] == [["a", "b", "c"]] * 4


def test_observers_hear_of_a_commit_without_waiting_for_a_heartbeat() -> None:
    cluster, machines = cluster_of_words(4, [1, 2, 3])
    cluster.run(0.05)
    cluster[1].append("a")
    cluster.run(0.03)
    assert machines[4].words == ["a"]


def test_an_observer_follows_a_new_leader() -> None:
    cluster, machines = cluster_of_words(4, [1, 2, 3])
    cluster.kill(1)
    cluster.run(1)
    cluster.leader().append("a")
    cluster.run(2)
    assert machines[4].words == ["a"]
    assert cluster[4].node.leader_of(KEY)[0] == cluster.leader().node_id


def test_who_comes_late_gets_a_snapshot_and_what_follows() -> None:
    cluster, machines = cluster_of_words(4, [1, 2, 3])
    left = {number: cluster.kill(number) for number in (3, 4)}
    for word in "abc":
        cluster[1].append(word)
    cluster.run(0.5)
    for number in (1, 2):
        cluster[number].replica().move_log_start(Offset(2))
    for number, (files, state) in left.items():
        machines[number] = open_words(cluster.start(number, files, state), [1, 2, 3])
    cluster.run(4)
    assert machines[3].words == ["a", "b", "c"]
    assert machines[4].words == ["a", "b", "c"]
    assert cluster[3].values() == ["c"]


def test_a_replica_with_a_state_machine_keeps_its_own_log_start() -> None:
    cluster, _ = cluster_of_words(3, [1, 2, 3])
    cluster[1].append("a")
    cluster.run(0.3)
    cluster[1].replica().move_log_start(Offset(1))
    cluster.run(1)
    assert [b.replica().log_start for b in cluster.brokers.values()] == [1, 0, 0]


def test_after_a_restart_it_goes_on_from_where_its_snapshot_is() -> None:
    cluster, machines = cluster_of_words(1, [1])
    for word in "abc":
        cluster[1].append(word)
    cluster.run(0.1)
    assert machines[1].words == ["a", "b", "c"]
    back = cluster.start(1, *cluster.kill(1))
    words = Words(applied=2)
    back.open([1], applier=words, partition=TOPIC)
    cluster.run(0.1)
    assert words.words == ["c"]


def test_nothing_is_applied_that_is_not_committed() -> None:
    cluster, machines = cluster_of_words(3, [1, 2, 3])
    cluster[1].append("a")
    cluster.step()
    for number in (2, 3):
        cluster.turn(cluster[number])  # their answers are on the way
    cluster[1].append("b")
    cluster.step()
    cluster.turn(cluster[1])
    assert machines[1].words == ["a"]
    assert cluster[1].values() == ["a", "b"]
    cluster.settle()
    assert machines[1].words == ["a", "b"]
