"""`tidemark log` on files alone."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tidemark.cli.main import run
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import place
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset, ProducerId


class Printed(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two batches of two records in `orders-3`."""
    directory = tmp_path / "orders-3"
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(
        batch(0, "one", "two") + batch(2, "three", "four", compression=Compression.ZSTD)
    )
    return directory


def batch(base_offset: int, *values: str, compression: Compression = Compression.NONE) -> bytes:
    records = [
        Record(timestamp_ms=1000 + i, key=b"k", value=value.encode())
        for i, value in enumerate(values)
    ]
    data = bytearray(encode_batch(records, compression=compression))
    place(data, 0, base_offset=Offset(base_offset), epoch=Epoch(7))
    return bytes(data)


def damage(partition: Path) -> None:
    """Change a byte of the second batch's records."""
    (path,) = partition.glob("*.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def tidemark(capfd: pytest.CaptureFixture[str], *arguments: object) -> Printed:
    status = run([str(argument) for argument in arguments])
    return Printed(status, *capfd.readouterr())


def test_dump_is_a_table_of_batches(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = tidemark(capfd, "log", "dump", partition)
    assert printed.status == 0
    path, headings, *lines = printed.out.splitlines()
    assert path == f"{partition}/00000000000000000000.log"
    columns = ["OFFSET", "RECORDS", "EPOCH", "CODEC", "TIMESTAMP"]
    at = [headings.split().index(column) for column in columns]
    assert [[line.split()[i] for i in at] for line in lines] == [
        ["0", "2", "7", "none", "1001"],
        ["2", "2", "7", "zstd", "1001"],
    ]


def test_dump_as_json_is_a_line_a_batch(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = tidemark(capfd, "log", "dump", partition, "-o", "json")
    batches = [json.loads(line) for line in printed.out.splitlines()]
    assert [(b["base_offset"], b["last_offset"], b["damage"]) for b in batches] == [
        (0, 1, None),
        (2, 3, None),
    ]


def test_dump_says_how_transactions_have_ended(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    markers = b""
    for offset, is_commit in enumerate((True, False), 4):
        marker = Marker(is_commit, coordinator_epoch=9)
        made = bytearray(encode_marker(ProducerId(5), 1, marker, timestamp_ms=1))
        place(made, 0, base_offset=Offset(offset), epoch=Epoch(7))
        markers += bytes(made)
    (path,) = partition.glob("*.log")
    path.write_bytes(path.read_bytes() + markers)
    printed = tidemark(capfd, "log", "dump", partition)
    assert [line.split(maxsplit=8)[-1] for line in printed.out.splitlines()[-2:]] == [
        "commit, coordinator 9",
        "abort, coordinator 9",
    ]
    printed = tidemark(capfd, "log", "dump", partition, "-o", "json")
    last = json.loads(printed.out.splitlines()[-1])
    assert last["marker"] == {"outcome": "abort", "coordinator_epoch": 9}
    assert last["damage"] is None
    printed = tidemark(capfd, "log", "dump", partition, "--records")
    assert (printed.status, len(printed.out.splitlines())) == (0, 4)


def test_dumped_records_can_be_produced_again(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = tidemark(capfd, "log", "dump", partition, "--records")
    assert json.loads(printed.out.splitlines()[2]) == {
        "topic": "orders",
        "partition": 3,
        "offset": 2,
        "timestamp": 1000,
        "key": "k",
        "value": "three",
    }


def test_dumped_records_can_have_a_format(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = tidemark(capfd, "log", "dump", partition, "-f", r"%o %v %a{compression}\n")
    assert printed.out == "0 one none\n1 two none\n2 three zstd\n3 four zstd\n"


def test_a_single_file_can_be_looked_at(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (path,) = partition.glob("*.log")
    assert tidemark(capfd, "log", "dump", path, "-f", "%v ").out == "one two three four "


def test_a_data_directory_is_all_its_partitions(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = partition.with_name("clicks-0")
    other.mkdir()
    (other / "00000000000000000000.log").write_bytes(batch(0, "x"))
    printed = tidemark(capfd, "log", "dump", partition.parent, "-f", r"%t-%p %v\n")
    assert printed.out.splitlines()[:2] == ["clicks-0 x", "orders-3 one"]


def test_a_partition_that_is_removed_meanwhile_is_named_and_the_others_are_dumped(
    partition: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"{partition.parent}/gone-0"
    directories = [gone, str(partition)]
    monkeypatch.setattr("tidemark.cli.log.dump.partition_directories", lambda *_: directories)
    printed = tidemark(capfd, "log", "dump", partition.parent, "-f", "%v ")
    assert (printed.status, printed.out) == (0, "one two three four ")
    assert printed.err == f"{gone} was removed meanwhile\n"


def test_a_partition_that_is_removed_meanwhile_is_named_and_the_others_are_verified(
    partition: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"{partition.parent}/gone-0"
    directories = [gone, str(partition)]
    monkeypatch.setattr("tidemark.cli.log.verify.partition_directories", lambda *_: directories)
    printed = tidemark(capfd, "log", "verify", partition.parent, "-o", "json")
    assert printed.status == 0
    assert [each["partition"] for each in json.loads(printed.out)] == ["orders-3"]
    assert printed.err == f"{gone} was removed meanwhile\n"


def test_a_partition_whose_disk_is_not_mounted_is_not_taken_for_sound(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (partition.parent / "orders-4").symlink_to(partition.parent / "disk")
    (partition.parent / "notes").symlink_to(partition.parent / "disk")
    printed = tidemark(capfd, "log", "verify", partition.parent)
    assert printed.status == 1
    assert "orders-3" in printed.out
    assert "orders-4 was not checked: it is a symbolic link to" in printed.err
    assert "notes" not in printed.err


def test_where_every_partition_is_removed_meanwhile_there_is_nothing_to_be_shown(
    partition: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"{partition.parent}/gone-0"
    monkeypatch.setattr("tidemark.cli.log.verify.partition_directories", lambda *_: [gone])
    printed = tidemark(capfd, "log", "verify", partition.parent)
    assert (printed.status, printed.out) == (0, "")
    assert printed.err == f"{gone} was removed meanwhile\n"


def test_what_an_older_segment_has_left_is_shown_and_no_damage(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = partition / "00000000000000000004.log"
    path.write_bytes(batch(4, "five") + batch(0, "one") + batch(1, "two"))
    printed = tidemark(capfd, "log", "dump", partition)
    assert "what an older segment has left" in printed.out
    assert (printed.status, printed.err) == (0, "")


def test_what_is_sound_is_said_to_be(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = tidemark(capfd, "log", "verify", partition)
    assert printed.status == 0
    headings, row = (line.split() for line in printed.out.splitlines())
    shown = dict(zip(headings, row, strict=True))
    assert (shown["PARTITION"], shown["SOUND"], shown["RECORDS"]) == ("orders-3", "yes", "4")
    assert (shown["START"], shown["END"]) == ("0", "4")


def test_damage_is_found_told_and_is_a_failure(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(partition)
    verified = tidemark(capfd, "log", "verify", partition, "-o", "json")
    assert verified.status == 1
    assert "not sound" in verified.err
    (found,) = json.loads(verified.out)
    assert found["sound"] is False
    assert [problem["position"] > 0 for problem in found["problems"]] == [True]
    assert "PROBLEMS" in tidemark(capfd, "log", "verify", partition).out


def test_dump_shows_damage_and_what_can_still_be_read(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(partition)
    table = tidemark(capfd, "log", "dump", partition)
    assert table.status == 1
    assert "DAMAGED" in table.out
    records = tidemark(capfd, "log", "dump", partition, "-f", r"%v\n")
    assert records.status == 1
    assert records.out == "one\ntwo\n"
    assert records.err.count("\n") == 2, "where, and that there was something"


def test_a_torn_tail_is_told(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (path,) = partition.glob("*.log")
    path.write_bytes(path.read_bytes()[:-5])
    printed = tidemark(capfd, "log", "dump", partition, "-o", "json")
    assert printed.status == 1
    assert "are left" in json.loads(printed.out.splitlines()[-1])["what"]


@pytest.mark.parametrize("verb", ["dump", "verify"])
def test_a_directory_without_a_log_is_one_line(
    verb: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = tidemark(capfd, "log", verb, tmp_path)
    assert printed.status == 1
    assert "has no log in it" in printed.err
    assert printed.err.count("\n") == 1


def test_a_file_that_is_no_segment_is_one_line(
    partition: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = partition / "00000000000000000000.index"
    other.write_bytes(b"")
    printed = tidemark(capfd, "log", "dump", other)
    assert printed.status == 2
    assert f"{other} is no segment: those end in .log" in printed.err
    assert printed.err.count("\n") == 1
