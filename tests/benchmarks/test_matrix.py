"""The matrix: what is in the table, what comes of its runs, and a tiny run of each kind."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks.load.generator import GeneratorFailed
from benchmarks.matrix.command import open_generators
from benchmarks.matrix.measured import Limit, Measured, delivered
from benchmarks.matrix.run import measure
from benchmarks.matrix.session import Generators, Plan
from benchmarks.matrix.targets import Target
from benchmarks.matrix.workload import BASE, QUICK, WORKLOADS, Workload, chosen
from tidemark.client.histogram import Histogram
from tidemark.testing import BlockingCluster

TINY = Plan(runs=1, seconds=0.05, latency_seconds=0.1, prefill_bytes=200_000)
SLOW = 300.0  # requests a second that any machine can bear


def test_each_workload_has_a_name_of_its_own_and_quick_ones_are_among_them() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)
    assert set(QUICK) <= set(names)
    assert [workload.name for workload in chosen([], quick=True)] == list(QUICK)


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("record_bytes", {100, 1_000, 10_000}),
        ("partitions", {1, 16, 256, 2_000}),
        ("connections", {1, 10, 100, 1_000}),
        ("acks", {1, -1}),
        ("replicas", {1, 3}),
        ("flush", {"os", "commit"}),
        ("compression", {"none", "zstd"}),
        ("kind", {"produce", "tail", "catch-up", "mixed"}),
    ],
)
def test_an_axis_is_varied_while_all_else_is_as_at_the_base(axis: str, values: set[object]) -> None:
    assert {getattr(workload, axis) for workload in WORKLOADS} == values
    if axis != "kind":
        alone = [replace(w, name="", group="") for w in WORKLOADS]
        for value in values:
            assert replace(BASE, name="", group="", **{axis: value}) in alone  # type: ignore[arg-type] # by name


def test_workloads_are_chosen_by_name_by_group_and_by_pattern() -> None:
    assert [w.name for w in chosen(["base"])] == ["base"]
    assert {w.group for w in chosen(["fan-out"])} == {"fan-out"}
    assert {w.replicas for w in chosen(["3 replicas*"])} == {3}
    with pytest.raises(ValueError, match="groups are: base"):
        chosen(["no such"])


def test_a_workload_that_only_produces_has_no_consumers() -> None:
    with pytest.raises(ValueError, match="has consumers, or produces only"):
        Workload(name="odd", group="base", kind="tail")


def test_a_batch_is_delivered_when_a_reader_has_all_of_it() -> None:
    arrivals = [(115, 4_000), (125, 9_000)]  # in nanoseconds; one batch and a half, then the rest
    found = delivered(arrivals, first=100, each=10, began_ns=1_000, rate=1e6)
    expected = Histogram()
    expected.record(4_000 - 1_000)
    expected.record(9_000 - 2_000)
    assert found == expected


def test_what_a_limit_has_is_held_against_it() -> None:
    measured = Measured(workload=BASE)
    for seconds in (1.0, 2.0, 1.0):
        measured.note_work(1_000, 2_000_000, seconds, 0.5)
    rows = {row.question: row for row in measured.rows(Limit(name="it", figures={"bytes": 4.0}))}
    assert (rows["bytes"].value, rows["bytes"].ratio, rows["bytes"].against) == (2.0, 0.5, "it")
    assert (rows["bytes"].low, rows["bytes"].high, rows["bytes"].spread) == (1.0, 2.0, 0.25)
    assert (rows["processor time a request"].value, rows["processor time a MB"].value) == (500, 250)
    assert rows["requests"].ratio is None


def test_processor_time_is_for_all_that_was_handled_and_not_only_in_time() -> None:
    measured = Measured(workload=BASE)
    measured.note_work(1_000, 2_000_000, 1.0, 0.6, handled=1_500)
    rows = {row.question: row.value for row in measured.rows(None)}
    assert (rows["bytes"], rows["requests"]) == (2.0, 1_000)
    assert rows["processor time a request"] == pytest.approx(400)
    assert rows["processor time a MB"] == pytest.approx(200)


@pytest.fixture(scope="module")
def load() -> Iterator[Generators]:
    with open_generators() as generators:
        yield generators


@pytest.fixture
def target(tidemark_session: BlockingCluster) -> Target:
    return Target("here", tidemark_session.bootstrap, [os.getpid()], is_tidemark=True)


@pytest.mark.parametrize(
    "workload",
    [
        replace(BASE, partitions=3, connections=4),
        replace(BASE, compression="zstd", flush="commit", acks=1),
        replace(BASE, kind="tail", consumers=2, share=0.1),
        replace(BASE, kind="catch-up", consumers=1, partitions=2),
        replace(BASE, kind="mixed", consumers=2, share=0.1),
    ],
    ids=["produce", "zstd", "tail", "catch-up", "mixed"],
)
def test_a_tiny_run_has_its_figures(workload: Workload, load: Generators, target: Target) -> None:
    measured = measure(target, workload, load, replace(TINY, rate=SLOW))
    assert all(value > 0 for value in measured.figures["bytes"])
    assert measured.figures["resident memory"][0] > 1
    wanted = {
        "produce": {"acknowledged"},
        "tail": {"acknowledged", "delivered"},
        "catch-up": set(),
        "mixed": {"acknowledged", "delivered"},
    }[workload.kind]
    assert set(measured.latencies) == wanted
    if wanted:
        (acknowledged,) = measured.latencies["acknowledged"]
        assert acknowledged.total == SLOW * TINY.latency_seconds


def test_a_load_that_is_refused_says_so(load: Generators, target: Target) -> None:
    address = target.bootstrap.rpartition(":")
    task = {
        "role": "produce",
        "topic": "there-is-none",
        "lanes": [{"address": (address[0], 1), "partitions": [0]}],
        "connections": 1,
        "in_flight": 1,
        "acks": -1,
        "batch_bytes": 100,
        "record_bytes": 10,
        "compression": "none",
        "warm": 1,
        "is_bare": False,
    }
    with pytest.raises(GeneratorFailed, match="ConnectionRefusedError"), load.producer.task(**task):
        pass
