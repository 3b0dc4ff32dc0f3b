"""A leader that is moved: quietly when all is well, not at all when something stands in the way."""

from uuid import UUID

import pytest

from tests.partitions.replication.cluster import KEY, Broker, Cluster
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.messages import HandOver, VoteRequest, VoteResponse
from tidemark.partitions.replication.ended_move import EndedMove, Ending
from tidemark.partitions.replication.moves import Moves, MoveTiming, Phase
from tidemark.partitions.replication.peer_messages import GroupMessage, PeerMessage
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


class MovingCluster(Cluster):
    """Three brokers, and a group that broker 1 leads."""

    def __init__(self, count: int = 3) -> None:
        self.lost: tuple[type, ...] = ()
        """Messages of these kinds do not arrive."""
        self.late: list[tuple[NodeId, NodeId, PeerMessage]] = []
        """What they were."""
        super().__init__(count)
        self.open(tuple(range(1, count + 1)), preference=tuple(range(1, count + 1)))
        self.run(1.0)
        assert self.leader().node_id == 1

    def moves(self, node: int = 1) -> Moves:
        return self[node].node.moves

    def begin(self, target: int, *, seconds: float = 5.0) -> None:
        node = self.leader().node
        node.move_leader(KEY, NodeId(target), self.now + seconds, now=self.now)

    def outcome(self, node: int = 1) -> EndedMove:
        (ended,) = self[node].ended_moves
        self[node].ended_moves.clear()
        return ended

    def turn(self, broker: Broker) -> None:
        super().turn(broker)
        late = [
            each
            for each in self.pool
            if isinstance(each[2], GroupMessage) and isinstance(each[2].message, self.lost)
        ]
        self.late += late
        self.pool = [each for each in self.pool if each not in late]


def paused(cluster: MovingCluster, *slow: int) -> MovingCluster:
    """Broker 3 is to lead and has caught up; then "b" is appended, and disks become slow."""
    for node in slow:
        cluster[node].is_disk_slow = True
    cluster[1].append("a")
    cluster.settle()
    cluster.begin(3)
    for node in slow:
        cluster[node].sync()
    cluster[1].append("b")
    cluster.run(0.1)
    return cluster


def refusal(cluster: MovingCluster, target: int) -> RequestError:
    with pytest.raises(RequestError) as caught:
        cluster.begin(target)
    return caught.value


def test_the_target_leads_and_nothing_of_what_was_written_is_lost() -> None:
    cluster = MovingCluster()
    cluster[1].append("a")
    cluster[1].append("b")
    cluster.begin(3)
    cluster.run(0.2)
    assert cluster.leader().node_id == 3
    assert cluster[3].committed_values() == ["a", "b"]
    outcome = cluster.outcome()
    assert (outcome.ending, outcome.attempts) == (Ending.DONE, 1)
    assert outcome.paused_seconds < 0.05
    assert cluster[3].append("c")
    cluster.run(0.2)
    assert cluster[1].committed_values() == ["a", "b", "c"]


def test_what_was_appended_before_the_pause_is_committed_before_the_lead_is_given_away() -> None:
    cluster = paused(MovingCluster(), 2, 3)
    assert cluster.moves().phase(KEY) is Phase.PAUSE
    assert cluster[1].replica().group.successor is None
    assert cluster[1].replica().high_watermark == 1
    for node in (2, 3):
        cluster[node].is_disk_slow = False
    cluster.run(0.2)
    assert cluster.leader().node_id == 3
    assert cluster[1].replica().high_watermark == 2


def test_the_targets_answer_is_enough_though_all_was_committed_without_it() -> None:
    cluster = paused(MovingCluster(), 3)
    assert cluster[1].replica().high_watermark == 2
    assert cluster.moves().phase(KEY) is Phase.PAUSE
    cluster[3].is_disk_slow = False
    cluster[3].sync()
    cluster.settle()
    assert cluster.leader().node_id == 3, "no time has passed"


def test_the_lead_is_not_given_away_for_what_only_the_target_holds_for_certain() -> None:
    cluster = MovingCluster()
    cluster[1].is_disk_slow = cluster[2].is_disk_slow = True
    cluster[1].append("a")
    cluster.begin(3)
    cluster.run(0.2)
    assert cluster.moves().phase(KEY) is Phase.PAUSE
    progress = {each.node: each.match for each in cluster[1].replica().group.progress()}
    assert progress[NodeId(3)] == cluster[1].replica().group.shape.last
    assert cluster[1].replica().high_watermark == 0
    assert cluster[1].replica().group.successor is None
    for node in (1, 2):
        cluster[node].is_disk_slow = False
    cluster.run(0.2)
    assert cluster.leader().node_id == 3
    assert cluster[3].committed_values() == ["a"]


def test_the_lead_is_not_given_away_while_producers_wait_for_more_than_a_majority() -> None:
    cluster = MovingCluster()
    awaited = [True]
    cluster[1].replica().is_awaited = lambda: awaited[0]
    cluster.begin(3)
    cluster.run(0.3)
    assert cluster.moves().phase(KEY) is Phase.PAUSE
    assert cluster.leader().node_id == 1
    awaited[0] = False
    cluster.run(0.15)
    assert cluster.leader().node_id == 3
    assert cluster.outcome().attempts == 1

    cluster[3].replica().is_awaited = lambda: True
    cluster.begin(1)
    cluster.run(3)
    ended = cluster.outcome(3)
    assert ended.why == "tried 3 times: producers wait for more replicas than a majority"
    assert cluster[3].append("a")


def test_writes_are_held_while_the_move_pauses_and_taken_again_when_it_fails() -> None:
    cluster = paused(MovingCluster(), 3)  # broker 2 suffices to commit it, but 3 is to lead
    assert cluster[1].replica().high_watermark == 2
    assert cluster[1].replica().is_serving
    assert not cluster[1].replica().is_accepting
    with pytest.raises(RequestError) as caught:
        cluster[1].append("c")
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.run(5)
    outcome = cluster.outcome()
    assert outcome.ending is Ending.FAILED
    assert outcome.why == "not by its deadline: broker 3 has not caught up"
    assert 0.5 <= outcome.paused_seconds < 0.55, (
        "it is not tried again before the target has caught up"
    )
    assert cluster[1].append("c")
    cluster[3].is_disk_slow = False
    cluster.run(1)
    assert cluster.leader().node_id == 1
    assert cluster[2].committed_values() == ["a", "b", "c"]


def test_writes_flow_between_two_attempts() -> None:
    cluster = paused(MovingCluster(), 3)
    cluster.run(0.5)
    assert cluster.moves().phase(KEY) is Phase.CATCH_UP
    assert cluster[1].append("c")
    cluster[3].is_disk_slow = False
    cluster.run(0.5)
    assert cluster.leader().node_id == 3
    assert cluster.outcome().attempts == 2
    assert cluster[3].committed_values() == ["a", "b", "c"]


def test_writes_flow_as_soon_as_a_target_was_not_elected_in_time() -> None:
    cluster = MovingCluster()
    cluster.lost = (HandOver,)
    cluster.begin(2)
    cluster.run(0.1)
    assert cluster.moves().phase(KEY) is Phase.HAND_OVER
    cluster.run(0.5)
    assert cluster.moves().phase(KEY) is Phase.CATCH_UP
    assert cluster[1].append("a"), "between two attempts"
    cluster.run(0.3)
    assert cluster.moves().phase(KEY) is Phase.HAND_OVER
    cluster.moves().abort(KEY, "it was called off", cluster.now)
    assert cluster[1].append("b"), "and after the last"
    cluster.pool += cluster.late  # The target is told after all.
    cluster.lost = ()
    cluster.run(1)
    assert cluster.leader().committed_values() == ["a", "b"]


@pytest.mark.parametrize("kind", [HandOver, VoteRequest])
def test_a_lost_message_costs_an_attempt_and_no_more(kind: type) -> None:
    cluster = MovingCluster()
    cluster.lost = (kind,)
    cluster.begin(2)
    cluster.run(0.1)
    assert cluster.late
    cluster.lost = ()
    cluster.run(5)
    if kind is VoteRequest:
        # The target had made the next epoch its own, and deposes the leader with it: who leads
        # after that finds the wish, and begins anew.
        assert cluster.outcome().ending is Ending.LEFT
        assert cluster.leader().node_id == 1
        cluster.begin(2)
        cluster.run(1)
    assert cluster.leader().node_id == 2
    assert cluster.outcome().ending is Ending.DONE


def test_an_election_that_takes_its_time_is_left_to_the_one_whom_it_is_for() -> None:
    for target in (2, 3):
        cluster = MovingCluster()  # in which broker 1 had better lead, then 2
        epoch = cluster.leader().replica().epoch
        cluster.lost = (VoteResponse,)
        cluster.begin(target)
        cluster.run(0.4)  # busy machines
        assert len(cluster.late) == 2
        cluster.lost = ()
        cluster.pool += cluster.late
        cluster.run(0.2)
        assert cluster.leader().node_id == target
        assert cluster.leader().replica().epoch == epoch + 1, "nobody else has campaigned"
        assert cluster.outcome().ending is Ending.DONE


def test_a_change_of_voters_is_not_given_up_while_slow_disks_store_the_votes() -> None:
    """Its leader stands again for that, and each attempt after it would be as short."""
    cluster = MovingCluster()
    voters = NodeId(1), NodeId(2)
    timeout = Timing().campaign_timeout_seconds
    cluster.lost = (VoteResponse,)
    cluster[1].replica().tell(lambda group: group.change_config(voters))
    cluster.run(1.3 * timeout)
    assert cluster.late
    cluster.lost = ()
    cluster.pool += cluster.late
    cluster.run(0.5)
    assert cluster.leader().replica().group.config == Configuration(voters)


def test_a_target_that_dies_in_each_phase_leaves_the_leader_leading() -> None:
    for steps in range(6):
        cluster = MovingCluster()
        cluster[1].append("a")
        cluster.begin(3)
        for _ in range(steps):
            cluster.step()
        cluster.kill(3)
        cluster.run(4)
        assert cluster.leader().node_id in (1, 2)
        leader = cluster.leader()
        assert leader.append("b"), f"after {steps} steps"
        cluster.run(1)
        assert leader.committed_values() == ["a", "b"]
        assert KEY not in cluster.moves()
        if leader.node_id == 1 and leader.replica().epoch == 0:
            assert cluster.outcome().why == "broker 3 cannot be reached"


def test_a_leader_that_dies_in_each_phase_leaves_a_group_that_elects_another() -> None:
    for steps in range(6):
        cluster = MovingCluster()
        cluster[1].append("a")
        cluster.settle()
        cluster.begin(3)
        for _ in range(steps):
            cluster.step()
        cluster.kill(1)
        cluster.run(4)
        assert cluster.leader().committed_values() == ["a"]
        assert cluster.leader().append("b")


def test_a_leader_that_is_deposed_meanwhile_leaves_the_wish_to_the_next() -> None:
    cluster = paused(MovingCluster(), 3)
    cluster.cut = {(1, 2), (2, 1), (1, 3), (3, 1)}
    cluster[3].is_disk_slow = False
    cluster.run(5)
    cluster.cut = set()
    cluster.run(3)
    assert cluster.leader().node_id in (2, 3)
    assert cluster.outcome().ending is not Ending.DONE
    assert not cluster[1].replica().is_paused


def test_an_aborted_move_takes_writes_again() -> None:
    cluster = paused(MovingCluster(), 3)
    cluster.moves().abort(KEY, "it was called off", cluster.now)
    assert cluster[1].append("c")
    cluster.settle()
    assert cluster.outcome().why == "it was called off"


def test_a_move_ends_by_its_deadline() -> None:
    cluster = MovingCluster()
    cluster.cut = {(1, 3)}  # it can be heard, and hears nothing
    cluster[1].append("a")
    cluster.begin(3, seconds=0.3)
    cluster.run(0.4)
    outcome = cluster.outcome()
    assert outcome.ending is Ending.FAILED
    assert outcome.why.startswith("not by its deadline")
    assert outcome.paused_seconds == 0, "a target that is behind holds nobody up"


def test_a_move_that_cannot_be_is_refused() -> None:
    cluster = MovingCluster()
    assert "leads orders-0 already" in str(refusal(cluster, 1))
    assert "has no vote" in str(refusal(cluster, 4))
    cluster[3].is_disk_slow = True
    cluster[1].append("a")
    cluster.begin(3)
    assert "is being moved already" in str(refusal(cluster, 2))
    follower = cluster[2].replica()
    with pytest.raises(RequestError) as caught:
        cluster.moves(2).begin(follower, NodeId(3), now=cluster.now, deadline=cluster.now)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.kill(3)
    cluster.run(1)
    assert "cannot be reached" in str(refusal(cluster, 3))


def test_a_hundred_moves_end_with_the_lead_where_it_was_wanted() -> None:
    cluster = MovingCluster()
    values = []
    for number in range(100):
        leader = cluster.leader()
        target = leader.node_id % 3 + 1
        epoch = leader.replica().epoch
        leader.append(f"{number}")
        values.append(f"{number}")
        cluster.begin(target)
        cluster.run(0.05)
        assert cluster.leader().node_id == target
        assert cluster.leader().replica().epoch == epoch + 1, "one election each"
    assert cluster.leader().committed_values() == values


def test_the_timing_of_attempts_is_what_it_is_given() -> None:
    cluster = MovingCluster()
    cluster[1].node.moves = Moves(NodeId(1), MoveTiming(pause_seconds=0.1, attempts=1))
    paused(cluster, 3)
    cluster.run(0.1)
    assert cluster.outcome().why == "tried 1 times: broker 3 does not hold all yet"


def test_a_pause_ends_in_time_however_little_else_happens() -> None:
    cluster = MovingCluster()
    cluster[1].node.moves = Moves(NodeId(1), MoveTiming(pause_seconds=0.033, attempts=1))
    paused(cluster, 3)
    cluster.run(0.5)
    outcome = cluster.outcome()
    assert outcome.attempts == 1
    assert 0.032 < outcome.paused_seconds < 0.04, "heartbeats are further apart"


def test_a_group_that_is_given_up_is_not_moved_any_more() -> None:
    cluster = paused(MovingCluster(), 3)
    cluster[1].node.remove(KEY, is_deleted=False)
    cluster[1].take()
    assert cluster.outcome().why == "the replica was given up"
    assert KEY not in cluster.moves()


def test_who_has_no_replica_cannot_move_its_leader() -> None:
    cluster = MovingCluster()
    with pytest.raises(RequestError) as caught:
        cluster[1].node.move_leader(PartitionKey(UUID(int=99), 0), NodeId(2), 10.0)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
