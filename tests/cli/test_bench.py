"""`tidemark bench` measures whatever broker it is pointed at, and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tidemark.cli.bench_against import Side, in_turn
from tidemark.cli.main import run
from tidemark.testing import BlockingCluster, open_broker_process


@pytest.fixture
def bench(tidemark_session: BlockingCluster, capsys: pytest.CaptureFixture[str]) -> "Bench":
    return Bench(tidemark_session.bootstrap, capsys)


class Bench:
    """The command against one broker; what it prints, as values."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._bootstrap = bootstrap
        self._capsys = capsys

    def __call__(self, *arguments: str) -> object:
        status = run(["--bootstrap", self._bootstrap, *arguments])
        out, error = self._capsys.readouterr()
        assert status == 0, error
        return json.loads(out)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_what_is_written_is_read_back(bench: Bench, compression: str) -> None:
    rows = bench(
        "bench",
        "--records",
        "5000",
        "--partitions",
        "3",
        "--compression",
        compression,
        "-o",
        "json",
    )
    assert isinstance(rows, list)
    assert [(row["what"], row["records"]) for row in rows] == [("produce", 5000), ("consume", 5000)]


def test_latency_has_a_sample_for_every_record(bench: Bench) -> None:
    rows = bench("bench", "--records", "50", "--rate", "500", "-o", "json")
    assert isinstance(rows, list)
    assert [(row["what"], row["records"]) for row in rows] == [
        ("acknowledged", 50),
        ("delivered", 50),
    ]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--batch", "20000"), "make --batch smaller"),
        (("--size", "20000"), "make --size smaller"),
        (("--size", "20000", "--batch", "30000", "--rate", "100"), "make --size smaller"),
    ],
)
def test_what_is_too_large_is_made_smaller_with_an_option_of_its_own(
    tidemark_session: BlockingCluster,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    advice: str,
) -> None:
    at = ("--bootstrap", tidemark_session.bootstrap)
    small = ("--records", "500", "-c", "max.message.bytes=10000")
    assert run([*at, "bench", *small, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tidemark: MESSAGE_TOO_LARGE")
    assert f"; {advice}, or have the topic take it with -c max.message.bytes=BYTES\n" in error
    assert error.count("\n") == 1


def test_latency_is_measured_of_large_records_too(bench: Bench) -> None:
    large = ("--size", "1500000", "-c", "max.message.bytes=2000000")
    rows = bench("bench", "--records", "3", "--rate", "50", *large, "-o", "json")
    assert isinstance(rows, list)
    assert [row["records"] for row in rows] == [3, 3]


def test_the_topic_is_gone_afterwards(bench: Bench) -> None:
    bench("bench", "--records", "100", "-o", "json")
    topics = bench("topic", "list", "-o", "json")
    assert isinstance(topics, list)
    assert not [topic for topic in topics if topic["name"].startswith("tidemark-bench")]


def test_two_brokers_are_measured_in_turn_and_shown_side_by_side(
    bench: Bench, tmp_path: Path
) -> None:
    with open_broker_process(tmp_path / "other") as other:
        rows = bench(
            "bench",
            "--records",
            "200",
            "--against",
            other.bootstrap,
            "--against-config",
            "flush=os",
            "--rounds",
            "1",
            "-o",
            "json",
        )
        assert isinstance(rows, list)
    assert [(row["what"], row["unit"]) for row in rows] == [
        ("produce", "MB/s"),
        ("produce", "records/s"),
        ("consume", "MB/s"),
        ("consume", "records/s"),
        ("the broker's processor", "s"),
    ]
    assert all(row["here"] > 0 and row["there"] > 0 and row["times"] > 0 for row in rows)
    assert all(len(row["rounds"]) == 1 for row in rows)


def test_latencies_are_compared_at_the_same_rate(
    bench: Bench, tidemark_session: BlockingCluster
) -> None:
    at = tidemark_session.bootstrap  # a broker against itself
    options = ("--records", "30", "--rate", "1000", "--against", at, "--rounds", "1")
    rows = bench("bench", *options, "-o", "json")
    assert isinstance(rows, list)
    assert ("acknowledged", "p99 ms") in [(row["what"], row["unit"]) for row in rows]


def test_medians_ratios_and_noise_are_those_of_the_rounds() -> None:
    here, there = iter([9.0, 2.0, 4.0, 6.0]), iter([9.0, 1.0, 2.0, 2.0])
    rows = in_turn(
        Side(measure=lambda: {("produce", "MB/s"): next(here)}, pid=None),
        Side(measure=lambda: {("produce", "MB/s"): next(there)}, pid=None),
        rounds=3,
    )
    assert rows == [
        {
            "what": "produce",
            "unit": "MB/s",
            "here": 4.0,
            "there": 2.0,
            "times": 2.0,
            "noise": 0.25,
            "rounds": [[2.0, 1.0], [4.0, 2.0], [6.0, 2.0]],
        }
    ]


def test_who_is_measured_first_changes_with_each_round() -> None:
    order: list[str] = []

    def side(name: str) -> Side:
        def measure() -> dict[tuple[str, str], float]:
            order.append(name)
            return {("produce", "MB/s"): 1.0}

        return Side(measure=measure, pid=None)

    in_turn(side("here"), side("there"), rounds=3)
    assert order == ["here", "there", "there", "here", "here", "there", "there", "here"]
