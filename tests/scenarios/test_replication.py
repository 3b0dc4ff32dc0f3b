"""Scenarios of requests that are lost, late, doubled and out of order."""

from tests.scenarios.cluster import Cluster, Envelope, at
from tidemark.partitions.raft.entries import EpochStart, Run
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse, Opened
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

ONE_BYTE = Limits(append_bytes_max=1)


def _with_follower(limits: Limits) -> Cluster:
    cluster = Cluster(3, limits=limits)
    cluster.elect(1)
    cluster.crash(3)
    return cluster


def _next_of(cluster: Cluster, node: int) -> Position:
    (progress,) = [p for p in cluster[1].group.progress() if p.node == node]
    return progress.next


def test_requests_go_out_without_waiting_for_answers() -> None:
    cluster = _with_follower(Limits(append_bytes_max=1, window_bytes=3))
    cluster[1].append(b"abcdef")
    sent = cluster.take(AppendRequest, to=2)
    assert [e.message.prev.offset for e in sent if isinstance(e.message, AppendRequest)] == [
        0,
        1,
        2,
    ]
    cluster.deliver(sent[0])
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    assert len(cluster.take(AppendRequest, to=2)) == 1


def test_early_arrivals_are_kept_and_used_in_order() -> None:
    cluster = _with_follower(ONE_BYTE)
    cluster[1].append(b"abcd")
    sent = cluster.take(AppendRequest, to=2)
    for envelope in reversed(sent):
        cluster.deliver(envelope)
    assert cluster[2].log == b"abcd"
    cluster.settle()
    assert cluster[1].committed == b"abcd"


def test_early_arrivals_are_bounded() -> None:
    """64 bytes of bookkeeping each: two fit, and the farthest goes first."""
    cluster = _with_follower(Limits(append_bytes_max=1, early_bytes_max=130))
    cluster[1].append(b"abcde")
    sent = cluster.take(AppendRequest, to=2)
    for envelope in reversed(sent):
        cluster.deliver(envelope)
    assert cluster[2].log == b"abc"
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    assert cluster[2].log == b"abcde"


def test_what_was_lost_is_sent_again_from_what_is_known() -> None:
    cluster = _with_follower(ONE_BYTE)
    cluster[1].append(b"abcd")
    sent = cluster.take(AppendRequest, to=2)
    cluster.deliver(sent[0])
    cluster.settle()
    assert cluster[2].log == b"a"
    assert cluster[1].group.has_in_flight
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    assert cluster[2].log == b"abcd"
    assert not cluster[1].group.has_in_flight or cluster[1].dead == set()


def test_an_old_refusal_does_not_move_next_below_match() -> None:
    """Found in the prototype: a doubled refusal made the leader send what was long matched."""
    cluster = Cluster(3, limits=ONE_BYTE)
    cluster.elect(1)
    cluster[1].append(b"ab")
    cluster[1].persist()
    cluster.take()
    cluster.crash(1)
    cluster.elect(2)
    cluster.produce(2, b"wxyz")
    cluster[2].do(lambda g: g.step_down())
    cluster.elect(2)
    cluster.restart(1)
    refusals = [
        e
        for e in _run_until_quiet(cluster)
        if isinstance(e.message, AppendResponse) and e.message.match is None
    ]
    assert refusals
    leader = cluster[2].group
    before = leader.progress()
    cluster.deliver(*refusals)
    cluster[2].do(lambda g: g.peer_reset(NodeId(1)))
    cluster.deliver(*refusals)
    assert leader.progress() == before


def test_a_late_refusal_of_what_is_matched_by_now_is_not_believed() -> None:
    """A learner refused this very place when it had nothing; now the leader asks there again."""
    cluster = Cluster(4, voters=[1, 2, 3])
    cluster.elect(1)
    cluster.produce(1, b"abcd")
    cluster[1].do(lambda g: g.add_learner(NodeId(4)))
    cluster.deliver(*cluster.take(AppendRequest, to=4))
    cluster[4].persist()
    refusal = cluster.take(AppendResponse, source=4)
    cluster.deliver(*refusal)
    cluster.settle()
    cluster[1].do(lambda g: g.peer_reset(NodeId(4)))
    cluster.deliver(*refusal)
    assert _next_of(cluster, 4) == at(0, 4)


def _run_until_quiet(cluster: Cluster) -> list[Envelope]:
    """Everything that was said."""
    said: list[Envelope] = []
    while cluster.messages:
        envelopes = cluster.take()
        said += envelopes
        cluster.deliver(*envelopes)
        for node in cluster.nodes.values():
            node.persist()
    return said


def test_a_refusal_says_something_only_of_the_first_in_flight() -> None:
    cluster = _with_follower(ONE_BYTE)
    cluster[1].append(b"abcd")
    cluster.take()
    before = _next_of(cluster, 2)
    refusal = AppendResponse(Epoch(0), at(0, 2), None, at(0, 1))
    cluster.deliver(Envelope(2, 1, refusal))
    assert _next_of(cluster, 2) == before


def test_a_refusal_that_leads_forward_is_not_followed() -> None:
    cluster = _with_follower(ONE_BYTE)
    cluster[1].append(b"abcd")
    cluster.take()
    before = _next_of(cluster, 2)
    cluster.deliver(Envelope(2, 1, AppendResponse(Epoch(0), at(0, 0), None, at(0, 3))))
    assert _next_of(cluster, 2) == before


def test_a_refusal_that_leads_nowhere_is_not_followed() -> None:
    """A follower whose epoch begins where the leader's has not begun: no honest one has that."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"ab")
    cluster.elect(2)
    cluster.produce(2, b"cd")
    cluster[2].append(b"e")
    (sent,) = cluster.take(AppendRequest, to=3)
    assert isinstance(sent.message, AppendRequest)
    assert sent.message.prev == at(1, 4)
    before = cluster[2].group.progress()
    cluster.deliver(Envelope(3, 2, AppendResponse(Epoch(1), at(1, 4), None, at(1, 1))))
    assert cluster[2].group.progress() == before
    assert not cluster.take(AppendRequest, to=3)


def test_a_place_that_is_in_no_log_is_not_committed() -> None:
    """As far as two logs agree, their epochs do: a leader that says otherwise is not believed."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"ab", only=[1, 2])
    cluster.elect(2, only=[1, 2])
    cluster[2].append(b"cd")
    held = cluster[1].group.committed
    lie = AppendRequest(Epoch(1), at(1, 2), (), at(0, 9))
    cluster.deliver(Envelope(2, 1, lie))
    assert cluster[1].group.committed == held


def test_an_old_shorter_append_does_not_cut_what_follows() -> None:
    cluster = _with_follower(ONE_BYTE)
    cluster[1].append(b"ab")
    short = cluster.take(AppendRequest, to=2)
    cluster.deliver(*short)
    cluster[1].append(b"cd")
    cluster.settle()
    assert cluster[2].log == b"abcd"
    cluster.deliver(*short)
    assert cluster[2].log == b"abcd"
    assert cluster[2].disk.pending == []


def test_an_old_epoch_start_does_not_cut_what_follows() -> None:
    cluster = Cluster(3)
    cluster.win(1, {1, 2})
    old = cluster.take(AppendRequest, to=2)
    cluster.deliver(*old)
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    cluster[1].append(b"abcd")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*old)
    assert cluster[2].log == b"abcd"
    assert not cluster[2].failures


def test_a_run_that_is_cut_otherwise_the_second_time_is_taken_from_where_it_is_new() -> None:
    """Nobody may cut what was acknowledged, not even to write it again in the same breath."""
    cluster = _with_follower(Limits(append_bytes_max=100))
    cluster[1].append(b"ab")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.take()  # the answer is lost
    cluster[1].append(b"cd")
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    again = cluster.take(AppendRequest, to=2)[-1]
    assert isinstance(again.message, AppendRequest)
    assert [len(e.records) for e in again.message.entries if isinstance(e, Run)] == [4]
    cluster.deliver(again)
    assert cluster[2].log == b"ab"
    assert cluster[2].disk.pending == []
    cluster.settle()
    assert cluster[2].log == b"abcd"


def test_doubled_answers_do_not_multiply_requests() -> None:
    """Who sends on every answer, news or not, drowns in its own requests (the prototype did)."""
    cluster = Cluster(3, limits=ONE_BYTE)
    cluster.elect(1)
    said = 0
    cluster[1].append(b"abcdefgh")
    for _ in range(20):
        cluster[1].persist()
        for envelope in cluster.take():
            said += 1
            cluster.deliver(envelope, envelope)
        for node in cluster.nodes.values():
            node.persist()
    assert not cluster.messages
    assert said < 8 * 2 * 4
    assert cluster[1].committed == b"abcdefgh"


def test_an_idle_group_has_nothing_to_do() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    for node in cluster.nodes.values():
        assert not node.group.has_ready
        assert not node.group.has_in_flight


def test_a_zombie_leader_is_refused_and_told() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.partition({1}, {2, 3})
    cluster.elect(2, only={2, 3})
    cluster.heal()
    cluster.messages.clear()
    cluster[1].append(b"zombie")
    cluster.settle()
    assert not cluster[1].group.is_leader
    assert cluster[1].group.epoch == cluster[2].group.epoch
    assert cluster[2].log == b""


def test_what_was_cut_and_written_anew_is_not_durable_by_the_old_token() -> None:
    """The ABA race: a late "durable" for the first three records at the same offsets."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    (old_token,) = cluster[2].disk.pending
    cluster.take()
    cluster.partition({1}, {2}, {3})
    cluster.heal()
    row = EpochStart(Epoch(5), Offset(0), NodeId(3), cluster[2].group.config)
    entries = (row, Run(Epoch(5), Offset(0), Offset(3), b"xyz"))
    cluster.deliver(Envelope(3, 2, AppendRequest(Epoch(5), at(0, 0), entries, at(0, 0))))
    assert cluster[2].log == b"xyz"
    cluster[2].group.persisted(old_token)
    assert cluster[2].group.durable == at(0, 0)


def test_truncation_comes_before_the_entries_that_replace() -> None:
    """Both in one `Ready`, and what was to be written before them in one of its own."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    group = cluster[2].group
    (request,) = cluster.take(AppendRequest, to=2)
    group.receive(NodeId(1), request.message)
    row = EpochStart(Epoch(5), Offset(0), NodeId(3), group.config)
    group.receive(NodeId(3), AppendRequest(Epoch(5), at(0, 0), (row,), at(0, 0)))
    first, second = group.take_ready(), group.take_ready()
    assert [entry.position for entry in first.entries] == [at(0, 3)]
    assert (second.truncate_to, second.entries) == (at(0, 0), (row,))
    assert 0 < first.token < second.token


def test_committed_entries_are_never_cut() -> None:
    """Only a leader that lost data can ask for it: then this replica stops, and says so."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    row = EpochStart(Epoch(5), Offset(0), NodeId(3), cluster[2].group.config)
    liar = AppendRequest(Epoch(5), at(0, 0), (row,), at(0, 0))
    cluster.deliver(Envelope(3, 2, liar))
    (failure,) = cluster[2].failures
    assert failure.committed == at(0, 3)
    assert "committed" in str(failure)
    assert cluster[2].log == b"abc"
    cluster.deliver(Envelope(3, 2, liar))
    cluster[2].do(lambda g: g.campaign())
    assert not cluster.take(object, source=2)


def test_entries_that_do_not_follow_each_other_are_not_taken() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    last = cluster[2].group.shape.last
    cluster.messages.clear()
    config = cluster[2].group.config
    for entries in (
        (Run(Epoch(0), Offset(1), Offset(2), b"b"),),
        (Run(Epoch(1), Offset(0), Offset(1), b"a"),),
        (Run(Epoch(0), Offset(0), Offset(0), b""),),
        (EpochStart(Epoch(0), Offset(0), NodeId(1), config),),
        (EpochStart(Epoch(9), Offset(0), NodeId(1), config),),
    ):
        cluster.deliver(Envelope(1, 2, AppendRequest(Epoch(0), at(0, 0), entries, at(0, 0))))
    assert cluster[2].group.shape.last == last
    assert not cluster.messages


def test_an_answer_that_claims_what_was_never_sent_is_not_believed() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster[1].persist()
    for claim in (at(0, 99), at(7, 0), at(0, 2)):
        cluster.deliver(Envelope(2, 1, AppendResponse(Epoch(0), at(0, 0), claim)))
    assert cluster[1].group.high_watermark == 0


def test_a_replica_that_is_there_late_is_sent_what_it_missed() -> None:
    cluster = _with_follower(Limits())
    cluster[1].append(b"abc")
    cluster.take(AppendRequest, to=2)
    cluster.settle()
    assert cluster[2].log == b""
    cluster.deliver(Envelope(2, 1, Opened(Epoch(0))))
    cluster.settle()
    assert cluster[1].committed == b"abc"


def test_a_replica_that_is_there_late_gets_nothing_from_who_does_not_lead() -> None:
    cluster = _with_follower(Limits())
    cluster.deliver(Envelope(3, 2, Opened(Epoch(0))))
    assert not cluster.take()


def test_a_leader_waits_for_nobody_who_is_dead() -> None:
    """Who waits is looked at every second: that is not for a broker that is down for a week."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].dead.add(3)
    cluster[1].append(b"a")
    cluster.settle(only={1, 2})
    assert cluster[1].group.waits_for() == {3}
    assert not cluster[1].group.has_in_flight
    cluster[1].dead.clear()
    assert cluster[1].group.has_in_flight
