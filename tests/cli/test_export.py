"""`tidemark export` against a broker."""

import os
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.cli.conftest import Command


@pytest.fixture
def topic(command: Command, name: str) -> str:
    """A topic of two partitions with ten records each."""
    assert command("topic", "create", name, "-p", "2").status == 0
    for partition in ("0", "1"):
        lines = b"".join(b"k%d\t%d\n" % (n % 3, n) for n in range(10))
        done = command("produce", name, "-p", partition, "-K", r"\t", "-H", "a=1", stdin=lines)
        assert done.status == 0
    return name


def test_a_topic_becomes_a_file_with_all_columns(
    command: Command, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "all.parquet"
    done = command("export", topic, "--to", str(path))
    assert done.status == 0
    rows = parquet.read_table(path).to_pylist()
    assert [(row["partition"], row["offset"], row["key"], row["value"]) for row in rows] == [
        (partition, n, b"k%d" % (n % 3), b"%d" % n) for partition in (0, 1) for n in range(10)
    ]
    assert rows[0]["headers"] == [{"key": "a", "value": b"1"}]
    assert rows[0]["timestamp_type"] == 0
    assert [each.name for each in tmp_path.iterdir()] == ["all.parquet"]


def test_a_part_of_a_topic_in_some_columns_as_text(
    command: Command, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "part.parquet"
    options = ["--from", "3", "--until", "6", "-p", "1", "-c", "value,offset", "--text"]
    assert command("export", topic, "--to", str(path), *options, "-z", "none").status == 0
    table = parquet.read_table(path)
    assert table.to_pylist() == [{"value": str(n), "offset": n} for n in (3, 4, 5)]


def test_what_cannot_be_exported_is_said_and_leaves_no_file(
    command: Command, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "none.parquet"
    for arguments, message in (
        (["nowhere"], "UNKNOWN_TOPIC_OR_PARTITION"),
        ([topic, "-p", "7"], "2 partitions, no partition 7"),
        ([topic, "-c", "size"], "no column 'size'; there are partition, offset"),
    ):
        done = command("export", *arguments, "--to", str(path))
        assert done.status != 0
        assert message in done.err
    assert command("produce", topic, stdin=b"\xff\n").status == 0
    done = command("export", topic, "--to", str(path), "--text")
    assert done.status == 1
    assert "not UTF-8" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(command: Command, topic: str, tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    done = command("export", topic, "--to", str(folder / "all.parquet"))
    assert done.status == 2
    assert f"there is no folder {folder} to write all.parquet into" in done.err
    assert "partial" not in done.err


def test_what_is_no_file_is_not_replaced_by_one(
    command: Command, topic: str, tmp_path: Path
) -> None:
    """A rename as root put a file in the place of /dev/stdout."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = command("export", topic, "--to", str(pipe))
    assert done.status == 2
    assert "is not a file to be replaced" in done.err
    assert pipe.is_fifo()


def test_standard_output_is_no_file_to_be_put_in_its_place(command: Command, topic: str) -> None:
    done = command("export", topic, "--to", "-")
    assert done.status == 2
    assert "put in its place once it is whole: name one" in done.err


def test_what_a_link_stands_for_is_replaced(command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path, link = tmp_path / "there" / "all.parquet", tmp_path / "latest.parquet"
    link.symlink_to(path)
    assert command("export", topic, "--to", str(link)).status == 0
    assert link.is_symlink()
    assert parquet.read_table(path).num_rows == 20
