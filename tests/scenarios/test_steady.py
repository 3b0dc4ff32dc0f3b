"""Scenarios of groups that are in step, or nearly.

Here as everywhere each group goes both ways (see `twins`), and it is a failure if those differ.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.scenarios.cluster import Cluster, at, hearing, resetting
from tests.scenarios.twins import both_ways, request_of
from tidemark.partitions.raft import steady
from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse
from tidemark.protocol.types import Epoch, NodeId, Offset


@pytest.fixture
def short() -> Iterator[Counter[str]]:
    """How often the short way was for it."""
    with both_ways() as counts:
        yield counts


def in_step() -> Cluster:
    """Broker 1 leads, and all three have what it has, durably, and know that it is committed."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    assert [cluster[node].committed for node in (1, 2, 3)] == [b"a"] * 3
    return cluster


def test_what_is_appended_and_answered_goes_the_short_way(short: Counter[str]) -> None:
    cluster = in_step()
    short.clear()
    cluster.produce(1, b"b")
    assert short == {"sent": 1, "taken in": 2, "acknowledged": 2, "committed": 1, "heard of": 2}
    assert [cluster[node].committed for node in (1, 2, 3)] == [b"ab"] * 3


def test_a_dead_follower_keeps_nobody_from_the_short_way(short: Counter[str]) -> None:
    cluster = in_step()
    cluster.crash(3)
    cluster[1].do(resetting(3))
    cluster.produce(1, b"b")
    short.clear()
    cluster.produce(1, b"c")
    assert short == {
        "sent": 1,
        "taken in": 1,
        "acknowledged": 1,
        "committed": 1,
        "heard of": 1,
    }


def test_what_does_not_fit_in_the_window_waits(short: Counter[str]) -> None:
    cluster = Cluster(3, limits=Limits(window_bytes=2))
    cluster.elect(1)
    cluster.produce(1, b"a")
    for data in (b"bb", b"c"):
        cluster[1].append(data)
    assert len(cluster.take(AppendRequest)) == 2, "one for each follower"


def test_followers_that_are_not_at_the_same_place_get_what_each_lacks() -> None:
    cluster = Cluster(3, limits=Limits(window_bytes=2))
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"bb")
    (late,) = cluster.take(AppendRequest, to=3)
    cluster.settle()
    cluster[1].append(b"c")
    cluster.deliver(late)
    cluster.settle()
    assert [cluster[node].log for node in (1, 2, 3)] == [b"abbc"] * 3


def test_a_run_that_comes_out_of_turn_is_kept() -> None:
    cluster = in_step()
    for data in (b"b", b"c", b"d"):
        cluster[1].append(data)
    first, second, third = cluster.take(AppendRequest, to=2)
    cluster.deliver(second)
    assert cluster[2].log == b"a"
    cluster.deliver(first)
    cluster.deliver(first)
    assert cluster[2].log == b"abc"
    cluster.deliver(third)
    assert cluster[2].log == b"abcd"


def test_a_run_of_somebody_else_than_the_leader_is_not_taken() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    (request,) = [each.message for each in cluster.take(AppendRequest, to=2)]
    cluster[2].do(lambda group: group.receive(NodeId(3), request))
    assert cluster[2].log == b"a"


def test_a_heartbeat_of_somebody_else_than_the_leader_commits_nothing() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"a")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster[2].do(hearing(3, Epoch(0), at(0, 1)))
    assert cluster[2].committed == b""
    cluster[2].do(hearing(1, Epoch(0), at(0, 1)))
    assert cluster[2].committed == b"a"


def test_an_answer_after_the_lead_was_given_up_counts_for_nothing() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    (answer,) = cluster.take(AppendResponse, source=2)
    cluster[1].persist()
    cluster[1].do(lambda group: group.step_down())
    cluster.deliver(answer)
    assert cluster[1].committed == b"a"


def test_an_answer_of_a_stranger_counts_for_nothing() -> None:
    cluster = Cluster(4, voters=[1, 2, 3])
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"b")
    epoch = cluster[1].group.epoch
    lie = AppendResponse(epoch, at(epoch, 1), at(epoch, 2))
    cluster[1].do(lambda group: group.receive(NodeId(4), lie))
    cluster[1].persist()
    assert cluster[1].committed == b"a"


def test_an_answer_about_what_the_leader_has_not_counts_for_nothing() -> None:
    cluster = in_step()
    epoch = cluster[1].group.epoch
    lie = AppendResponse(epoch, at(epoch, 1), at(epoch, 9))
    cluster[1].do(lambda group: group.receive(NodeId(2), lie))
    cluster[1].append(b"b")
    cluster[1].persist()
    assert cluster[1].committed == b"a"


def test_the_last_answer_lets_the_successor_know() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    cluster[1].do(lambda group: group.hand_over(NodeId(2)))
    cluster.settle()
    assert cluster[2].group.is_serving


def test_a_follower_commits_no_more_than_it_has() -> None:
    cluster = in_step()
    cluster.cut |= {(1, 3)}
    cluster[1].append(b"b")
    (first,) = cluster.take(AppendRequest, to=3)
    cluster.produce(1, b"c")
    cluster.cut.clear()
    cluster[1].append(b"d")
    assert isinstance(first.message, AppendRequest)
    ahead = AppendRequest(
        first.message.epoch,
        first.message.prev,
        first.message.entries,
        cluster[1].group.committed,
    )
    cluster[3].do(lambda group: group.receive(NodeId(1), ahead))
    assert cluster[3].committed == b"ab"


def test_news_of_the_commit_that_overtake_a_run_are_remembered() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    (late,) = cluster.take(AppendRequest, to=3)
    cluster.settle(only=[1, 2])
    cluster.beat()
    assert cluster[3].committed == b"a"
    cluster.deliver(late)
    assert cluster[3].committed == b"ab"


def test_an_epoch_that_is_not_the_newest_is_no_longer_followed() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    (late,) = cluster.take(AppendRequest, to=2)
    newer = Epoch(cluster[2].group.epoch + 1)
    cluster[2].do(lambda group: group.heard_leader(NodeId(3), newer, at(newer, 1)))
    cluster.deliver(late)
    assert cluster[2].log == b"a"


def test_two_followers_that_lack_something_else_each_get_their_own() -> None:
    cluster = Cluster(3, limits=Limits(window_bytes=2))
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"bb")
    (to_two,) = cluster.take(AppendRequest, to=2)
    (to_three,) = cluster.take(AppendRequest, to=3)
    cluster.deliver(to_two)
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse, source=2))
    cluster[1].append(b"c")  # to 2 alone: the window of 3 is full
    cluster.deliver(to_three)
    cluster[3].persist()
    (answer,) = cluster.take(AppendResponse, source=3)

    def answered_and_appended(group: Group) -> None:
        group.receive(NodeId(3), answer.message)
        cluster[1]._append(group, b"d")

    cluster[1].do(answered_and_appended)
    cluster.settle()
    assert [cluster[node].log for node in (1, 2, 3)] == [b"abbcd"] * 3


def test_what_begins_below_the_log_start_is_not_sent_though_it_is_in_memory() -> None:
    cluster = Cluster(3, limits=Limits(window_bytes=2))
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"bb")
    (late,) = cluster.take(AppendRequest, to=3)
    cluster.settle(only=[1, 2])
    cluster[1].append(b"c")
    cluster.settle(only=[1, 2])
    group = cluster[1].group
    run = Run(group.epoch, Offset(3), Offset(4), b"c")
    cluster[1].do(lambda group: group.trim(Offset(4)))
    cluster.deliver(late)
    cluster[3].persist()
    (answer,) = cluster.take(AppendResponse, source=3)
    group.receive(NodeId(3), answer.message)
    assert steady.take_ready(group, lambda base, end: run) is None


def test_a_late_run_of_an_epoch_before_the_same_leaders_newest_is_refused() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    (late,) = cluster.take(AppendRequest, to=2)
    newer = Epoch(cluster[2].group.epoch + 1)
    cluster[2].do(lambda group: group.heard_leader(NodeId(1), newer, at(newer, 1)))
    cluster.deliver(late)
    assert cluster[2].log == b"a"


def test_a_run_that_overtakes_the_start_of_its_epoch_is_not_taken() -> None:
    cluster = in_step()
    old, new = cluster[2].group.epoch, Epoch(cluster[2].group.epoch + 1)
    probe = AppendRequest(new, at(old, 1), (), at(old, 1))
    cluster[2].do(lambda group: group.receive(NodeId(3), probe))
    run = request_of(Run(new, Offset(1), Offset(2), b"b"), Offset(1))
    cluster[2].do(lambda group: group.receive(NodeId(3), run))
    assert cluster[2].log == b"a"


def test_who_may_have_lost_something_does_not_answer_as_one_that_has_not() -> None:
    cluster = in_step()
    cluster.crash(2)
    cluster.restart(2, is_clean=False)
    (probe,) = cluster.take(AppendRequest, to=2)
    cluster.deliver(probe)
    epoch = cluster[1].group.epoch
    run = request_of(Run(epoch, Offset(1), Offset(2), b"b"), Offset(1))
    cluster[2].do(lambda group: group.receive(NodeId(1), run))
    cluster[2].persist()
    answers = [each.message for each in cluster.take(AppendResponse, source=2)]
    assert not any(each.is_clean for each in answers if isinstance(each, AppendResponse))


def test_an_observer_is_not_taken_for_a_follower() -> None:
    cluster = in_step()
    cluster[3].do(Group.observe)
    cluster.beat()
    cluster[1].append(b"b")
    cluster.settle()
    assert cluster[3].log == b"ab"


def test_a_late_run_of_an_older_epoch_of_the_same_leader_is_not_taken() -> None:
    cluster = in_step()
    old, new = cluster[2].group.epoch, Epoch(cluster[2].group.epoch + 1)
    probe = AppendRequest(new, at(old, 1), (), at(old, 1))
    cluster[2].do(lambda group: group.receive(NodeId(1), probe))
    late = request_of(Run(old, Offset(1), Offset(2), b"b"), Offset(1))
    cluster[2].do(lambda group: group.receive(NodeId(1), late))
    assert cluster[2].log == b"a"


def test_what_comes_behind_something_that_is_not_written_yet_waits_for_it() -> None:
    cluster = in_step()
    for data in (b"b", b"c"):
        cluster[1].append(data)
    first, second = (each.message for each in cluster.take(AppendRequest, to=2))

    def both(group: Group) -> None:
        group.receive(NodeId(1), first)
        group.receive(NodeId(1), second)

    cluster[2].do(both)
    assert cluster[2].log == b"abc"


def test_news_of_the_commit_keep_no_run_behind_them_from_the_short_way(
    short: Counter[str],
) -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[1].append(b"c")
    (behind,) = (each.message for each in cluster.take(AppendRequest, to=2))
    news = at(cluster[1].group.epoch, 2)
    short.clear()

    def both(group: Group) -> None:
        group.heard_leader(NodeId(1), news.epoch, news)
        group.receive(NodeId(1), behind)

    cluster[2].do(both)
    assert short["taken in"] == 1
    assert (cluster[2].log, cluster[2].committed) == (b"abc", b"ab")


def test_an_answer_to_the_same_leaders_epoch_before_counts_for_nothing() -> None:
    cluster = in_step()
    cluster[1].append(b"b")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    (late,) = cluster.take(AppendResponse, source=2)
    cluster[1].do(lambda group: group.step_down())
    cluster.win(1, [1, 3])
    cluster.deliver(late)
    assert cluster[1].committed == b"a"
