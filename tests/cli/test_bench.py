"""`tidemark bench` measures whatever broker it is pointed at, and leaves nothing behind."""

import json

import pytest

from tidemark.cli.main import run
from tidemark.testing import BlockingCluster


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
    assert [row["what"] for row in rows] == ["produce", "consume"]
    written, read = (row["records"] for row in rows)
    assert written >= 5000
    # One more batch was written before the clock started.
    assert 0 < read - written < 5000


def test_latency_has_a_sample_for_every_record(bench: Bench) -> None:
    rows = bench("bench", "--records", "50", "--rate", "500", "-o", "json")
    assert isinstance(rows, list)
    assert [(row["what"], row["records"]) for row in rows] == [
        ("acknowledged", 50),
        ("delivered", 50),
    ]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in rows)


def test_the_topic_is_gone_afterwards(bench: Bench) -> None:
    bench("bench", "--records", "100", "-o", "json")
    topics = bench("topic", "list", "-o", "json")
    assert isinstance(topics, list)
    assert not [topic for topic in topics if topic["name"].startswith("tidemark-bench")]
