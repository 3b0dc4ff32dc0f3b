"""Scenarios of replicas that pull what is committed."""

from tests.scenarios.cluster import Cluster, Envelope, at
from tidemark.partitions.raft.entries import EpochStart, Run
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import (
    AppendRequest,
    PullRequest,
    PullResponse,
    ResetRequest,
)
from tidemark.protocol.types import Epoch, NodeId, Offset


def _with_observer(limits: Limits | None = None) -> Cluster:
    cluster = Cluster(4, voters=[1, 2, 3], limits=limits)
    cluster[4].do(lambda g: g.observe())
    cluster.elect(1)
    return cluster


def _pull(cluster: Cluster, parent: int, observer: int = 4) -> None:
    out = cluster[observer].group.next_pull(NodeId(parent))
    cluster.deliver(Envelope(observer, out.to, out.message))
    cluster.deliver(*cluster.take(PullResponse, to=observer))
    cluster[observer].persist()


def test_an_observer_has_what_is_committed_and_nothing_else() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    cluster[1].append(b"d")
    cluster.take()
    _pull(cluster, 1)
    assert cluster[4].log == cluster[4].committed == b"abc"
    assert not cluster[4].group.has_in_flight


def test_an_observer_can_ask_any_replica() -> None:
    cluster = _with_observer(Limits(append_bytes_max=2))
    cluster.produce(1, b"abcdef")
    for parent in (2, 3, 1, 2, 3):
        _pull(cluster, parent)
    assert cluster[4].committed == b"abcdef"


def test_a_parent_that_is_behind_resets_nobody() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc", only={1, 2, 4})
    _pull(cluster, 1)
    _pull(cluster, 3)
    assert cluster[4].log == b"abc"
    assert cluster[4].group.failure is None


def test_an_observer_below_its_parents_log_start_is_reset() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abcdef")
    cluster[1].disk.trim(Offset(4))
    cluster[1].do(lambda g: g.trim(Offset(4)))
    _pull(cluster, 1)
    assert cluster[4].group.shape.start == at(0, 4)
    _pull(cluster, 1)
    assert cluster[4].committed == b"ef"


def test_a_voter_that_becomes_an_observer_gives_up_its_uncommitted_tail() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"xyz")
    cluster[1].persist()
    cluster.take()
    cluster.partition({1}, {2, 3})
    cluster.elect(2, only={2, 3})
    cluster.produce(2, b"bcd", only={2, 3})
    cluster.heal()
    cluster[1].do(lambda g: g.observe())
    _pull(cluster, 2, observer=1)
    _pull(cluster, 2, observer=1)
    assert cluster[1].log == cluster[1].committed == b"abcd"


def test_an_answer_to_an_older_pull_is_not_taken() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    out = cluster[4].group.next_pull(NodeId(1))
    cluster.deliver(Envelope(4, 1, out.message))
    late = cluster.take(PullResponse)
    cluster.deliver(*late)
    cluster.deliver(*late)
    assert cluster[4].log == b"abc"


def test_an_old_reset_is_not_taken() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abcdef")
    cluster[1].disk.trim(Offset(4))
    cluster[1].do(lambda g: g.trim(Offset(4)))
    out = cluster[4].group.next_pull(NodeId(1))
    cluster.deliver(Envelope(4, 1, out.message))
    reset = cluster.take(PullResponse)
    cluster.deliver(*reset)
    _pull(cluster, 1)
    cluster.deliver(*reset)
    assert cluster[4].committed == b"ef"
    assert cluster[4].group.failure is None


def test_an_observer_serves_another_observer() -> None:
    cluster = Cluster(5, voters=[1, 2, 3])
    for observer in (4, 5):
        cluster[observer].do(lambda g: g.observe())
    cluster.elect(1)
    cluster.produce(1, b"abc")
    _pull(cluster, 1, observer=4)
    _pull(cluster, 4, observer=5)
    assert cluster[5].committed == b"abc"


def test_an_observer_does_not_campaign() -> None:
    cluster = _with_observer()
    cluster.messages.clear()
    cluster[4].do(lambda g: g.campaign())
    assert not cluster.messages


def test_an_observer_that_is_sent_entries_has_become_a_learner() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    _pull(cluster, 1)
    cluster[1].do(lambda g: g.add_learner(NodeId(4)))
    cluster.settle()
    cluster.produce(1, b"d")
    assert cluster[4].committed == b"abcd"


def test_an_observer_that_is_behind_in_this_epoch_becomes_a_learner_all_the_same() -> None:
    """What it is asked first begins beyond its end: it has to say so, not wait for what is before.

    Three brokers that joined while topics were made: two of them never learned of those.
    """
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    _pull(cluster, 1)
    cluster.produce(1, b"def")
    assert cluster[4].log == b"abc"
    cluster[1].do(lambda g: g.add_learner(NodeId(4)))
    cluster.settle()
    assert cluster[4].log == b"abcdef"


def test_what_a_parent_cannot_have_is_not_taken() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    last = cluster[4].group.shape.last
    torn = (Run(Epoch(0), Offset(1), Offset(2), b"b"),)
    row = EpochStart(Epoch(7), Offset(0), NodeId(1), cluster[1].group.config)
    to_come = ResetRequest(Epoch(0), at(7, 5), (row,), b"", at(7, 5))
    for answer in (
        PullResponse(Epoch(0), last, torn, at(0, 2)),
        PullResponse(Epoch(0), last, (), at(7, 5), to_come),
    ):
        cluster.deliver(Envelope(1, 4, answer))
    assert cluster[4].group.shape.last == last
    assert cluster[4].group.shape.start_offset == 0


def test_an_observer_whose_committed_log_is_refused_stops() -> None:
    """All that it has was committed, and its parent lacks it: somebody has lost data."""
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    _pull(cluster, 1)
    reset = ResetRequest(Epoch(0), at(-1, 0), (), b"", at(5, 9))
    cluster.deliver(Envelope(1, 4, PullResponse(Epoch(5), at(0, 3), (), at(5, 9), reset)))
    assert cluster[4].failures
    assert cluster[4].log == b"abc"


def test_what_is_not_written_yet_is_not_given() -> None:
    """Between an event and the `Ready` that is taken, the log lacks what the core knows of."""
    cluster = _with_observer()
    group = cluster[2].group
    entries = (Run(Epoch(0), Offset(0), Offset(3), b"abc"),)
    group.receive(NodeId(1), AppendRequest(Epoch(0), at(0, 0), entries, at(0, 3)))
    assert group.high_watermark == 3
    group.receive(NodeId(4), PullRequest(at(0, 0), at(0, 0), 100))
    cluster[2].drain()
    (answer,) = cluster.take(PullResponse)
    assert answer.message == PullResponse(Epoch(0), at(0, 0), (), at(0, 0))


def test_a_pull_for_no_bytes_at_all_makes_progress() -> None:
    cluster = _with_observer()
    cluster.produce(1, b"abc")
    cluster.deliver(Envelope(4, 1, PullRequest(at(0, 0), at(0, 0), 0)))
    (answer,) = cluster.take(PullResponse)
    assert isinstance(answer.message, PullResponse)
    assert answer.message.entries
