"""In how many ways two replicas stand to each other, and how many of them each run is the first to
see."""

from dataclasses import replace

from tests.scenarios.cluster import Cluster
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.novelty import State, states_of
from tidemark.testing.simulator.report import Report
from tidemark.testing.simulator.run import simulate


def seen(cluster: Cluster, *nodes: int) -> set[State]:
    return {*states_of([cluster[node].group for node in nodes])}


def led(by: int, records: bytes = b"abc") -> Cluster:
    cluster = Cluster(3)
    cluster.elect(by)
    cluster.produce(by, records)
    return cluster


def test_names_and_numbers_do_not_matter() -> None:
    assert seen(led(1), 1, 2, 3) == seen(led(3, b"a longer log"), 2, 1, 3)


def test_two_followers_are_one_thing_and_a_leader_with_one_another() -> None:
    assert len(seen(led(1), 2, 3)) == 1
    assert len(seen(led(1), 1, 2, 3)) == 2


def test_a_shorter_log_is_something_new() -> None:
    cluster = led(1)
    cluster[1].append(b"d")
    assert not seen(cluster, 1, 2) & seen(led(1), 1, 2)


def test_logs_that_part_are_something_new() -> None:
    cluster = led(1)
    cluster[1].append(b"only here")
    before = seen(cluster, 1, 2)
    cluster.crash(1)
    cluster.elect(2, only={2, 3})
    cluster.produce(2, b"there", only={2, 3})
    cluster.restart(1)
    assert not seen(cluster, 1, 2) & (before | seen(led(2), 1, 2))


def test_a_hand_over_is_something_new() -> None:
    cluster = led(1)
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    assert not seen(cluster, 1, 3) & seen(led(1), 1, 3)


def test_one_alone_stands_to_nobody() -> None:
    assert not seen(led(1), 1)
    assert not {*states_of([])}


def test_a_run_has_seen_something_and_the_same_again() -> None:
    one, same = simulate(3, seconds=2), simulate(3, seconds=2)
    assert one.coverage.states
    assert one.coverage.states == same.coverage.states


def test_what_each_tenth_of_the_runs_has_added() -> None:
    report, verdict = Report(), simulate(3, seconds=0.2)
    for number in range(25):
        states = {State(0), State(number // 5)}
        report.add(replace(verdict, coverage=replace(verdict.coverage, states=states)))
    assert report.states == 5
    assert report.new_states[:6] == [1, 0, 0, 0, 0, 1]
    # Two or three runs each; those that begin with the numbers 0, 5, 10, 15 and 20.
    assert report.plateau == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert Report().plateau == []
