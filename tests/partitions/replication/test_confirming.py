"""Whether a broker still leads: what it takes to be certain of it."""

from __future__ import annotations

from tests.partitions.replication.cluster import KEY, Broker, Cluster
from tidemark.partitions.replication.peer_messages import (
    ConfirmAnswer,
    ConfirmRound,
    GroupEpoch,
    Heartbeat,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId, Offset

Answers = list[Offset | RequestError]


def three() -> tuple[Cluster, Broker]:
    """Three brokers, and the one that leads their group."""
    cluster = Cluster(3)
    cluster.open()
    cluster.run(2.0)
    leader = cluster.leader()
    leader.append("a", "b")
    cluster.run(0.5)
    return cluster, leader


def ask(broker: Broker) -> Answers:
    answers: Answers = []
    broker.node.confirm(KEY, answers.append)
    return answers


def rounds(cluster: Cluster) -> list[ConfirmRound]:
    return [message for _, _, message in cluster.pool if isinstance(message, ConfirmRound)]


def cut_off(cluster: Cluster, node: int) -> None:
    for other in cluster.brokers:
        if other != node:
            cluster.cut |= {(node, other), (other, node)}


def test_a_leader_that_a_majority_answers_says_what_was_committed_when_it_was_asked() -> None:
    cluster, leader = three()
    answers = ask(leader)
    leader.append("c")
    assert answers == []
    cluster.settle()
    assert answers == [2]
    assert leader.replica().high_watermark == 3


def test_all_who_ask_in_a_turn_share_a_round_and_who_comes_later_waits_for_the_next() -> None:
    cluster, leader = three()
    first, second = ask(leader), ask(leader)
    cluster.turn(leader)
    assert len({each.number for each in rounds(cluster)}) == 1
    assert len(rounds(cluster)) == 2  # one to each of the others
    third, fourth = ask(leader), ask(leader)
    cluster.turn(leader)
    assert len(rounds(cluster)) == 2
    before = leader.node.confirmations.rounds
    cluster.settle()
    assert [*first, *second, *third, *fourth] == [2, 2, 2, 2]
    assert leader.node.confirmations.rounds == before + 1


def test_an_answer_to_an_earlier_round_says_nothing_of_now() -> None:
    cluster, leader = three()
    others = [node for node in cluster.brokers if node != leader.node_id]
    epoch = leader.replica().epoch
    ask(leader)
    cluster.turn(leader)
    number = rounds(cluster)[0].number
    cluster.settle()
    cut_off(cluster, leader.node_id)
    late = ask(leader)
    cluster.turn(leader)
    for node in others:  # it was on its way all the time
        answer = ConfirmAnswer(number, (GroupEpoch(KEY, epoch),))
        leader.node.receive(node, answer, cluster.now)
    assert late == []


def test_a_leader_that_is_cut_off_cannot_say_that_it_leads() -> None:
    cluster, leader = three()
    cut_off(cluster, leader.node_id)
    answers = ask(leader)
    cluster.run(0.3)
    assert leader.replica().is_serving, "it has not noticed yet"
    assert answers == []
    cluster.run(5.0)
    (answer,) = answers
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_voter_in_a_later_epoch_does_not_confirm_and_ends_the_leadership() -> None:
    cluster, leader = three()
    others = [node for node in cluster.brokers if node != leader.node_id]
    epoch = leader.replica().epoch
    answers = ask(leader)
    cluster.turn(leader)
    number = rounds(cluster)[0].number
    cluster.pool.clear()
    for node in others:
        answer = ConfirmAnswer(number, (GroupEpoch(KEY, Epoch(epoch + 1)),))
        leader.node.receive(node, answer, cluster.now)
    cluster.turn(leader)
    assert not leader.replica().is_leader
    assert isinstance(answers[0], RequestError)


def test_a_replica_that_has_begun_anew_confirms_nobody() -> None:
    """It is in no epoch, and cannot know whom it voted for before it was given up."""
    cluster, leader = three()
    follower = cluster.followers()[0]
    cluster.pool.clear()
    epoch = leader.replica().epoch
    follower.node.receive(
        leader.node_id, ConfirmRound(1, (GroupEpoch(KEY, Epoch(epoch + 1)),)), cluster.now
    )
    (answer,) = follower.take().sends[leader.node_id]
    assert isinstance(answer, ConfirmAnswer)
    assert answer.groups == (GroupEpoch(KEY, epoch),)  # and not the one it was asked about


def test_a_leader_that_has_committed_nothing_of_its_own_yet_waits_until_it_has() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    broker = cluster[1]
    broker.is_disk_slow = True
    broker.node.tick(cluster.now + 1.0)
    cluster.turn(broker)
    broker.sync()  # its vote
    cluster.turn(broker)
    assert broker.replica().group.is_leader
    answers = ask(broker)
    cluster.turn(broker)
    assert answers == []
    broker.sync()  # the beginning of its epoch
    cluster.turn(broker)
    assert answers == [0]


def test_a_round_that_was_lost_is_sent_again() -> None:
    cluster, leader = three()
    answers = ask(leader)
    cluster.turn(leader)
    cluster.pool = [each for each in cluster.pool if isinstance(each[2], Heartbeat)]
    cluster.settle()
    assert answers == []
    cluster.run(0.5)
    assert answers == [2]


def test_a_single_voter_needs_nobody() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    cluster.run(1.0)
    cluster[1].append("a")
    cluster.settle()
    answers = ask(cluster[1])
    cluster.settle()
    assert answers == [1]


def test_who_does_not_lead_says_so_at_once() -> None:
    cluster, _ = three()
    (answer,) = ask(cluster.followers()[0])
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_waits_no_more_is_not_called() -> None:
    cluster, leader = three()
    answers: Answers = []
    question = leader.node.confirm(KEY, answers.append)
    leader.node.confirmations.forget(question)
    cluster.settle()
    assert answers == []
    assert not leader.node.confirmations


def test_who_waits_when_the_replica_is_given_up_is_told() -> None:
    _, leader = three()
    answers = ask(leader)
    leader.node.remove(KEY, is_deleted=True)
    assert isinstance(answers[0], RequestError)


def test_the_others_need_not_all_answer() -> None:
    cluster, leader = three()
    dead = cluster.followers()[0].node_id
    cluster.cut |= {(leader.node_id, dead), (dead, leader.node_id)}
    answers = ask(leader)
    cluster.settle()
    assert answers == [2]
    assert NodeId(dead) in cluster.brokers


def test_who_asks_again_when_he_is_told_is_answered_again() -> None:
    """By then his group may be nobody's question any more, and his new one not be dropped with it:
    here another who waited has gone, in between, as a client does that hangs up."""
    cluster, leader = three()
    answers: Answers = []
    confirmations = leader.node.confirmations

    def ask_anew(answer: Offset | RequestError) -> None:
        answers.append(answer)
        confirmations.forget(gone)
        leader.node.confirm(KEY, answers.append)

    leader.node.confirm(KEY, ask_anew)
    gone = leader.node.confirm(KEY, answers.append)
    cluster.settle()
    cluster.run(0.5)
    assert answers == [2, 2]
    assert not confirmations
