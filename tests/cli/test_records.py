"""`tidemark produce` and `tidemark consume` against a broker."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

BYTES = bytes(range(256)).replace(b"\n", b"") + "✓".encode()


@pytest.fixture
def topic(command: Command, name: str) -> str:
    """A topic of two partitions, which keeps records of any age."""
    assert command("topic", "create", name, "-p", "2", "-c", "retention.ms=-1").status == 0
    return name


def test_lines_come_back_as_they_went_in(command: Command, topic: str) -> None:
    lines = b"one\n\n" + BYTES + b"\r\nlast\n"
    assert command("produce", topic, "-p", "0", stdin=lines).status == 0
    assert command("consume", topic, "--exit").out == lines


def test_a_file_is_read_to_its_last_byte(command: Command, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"x" * 1_000_000 + b"\n" + b"last")
    command("topic", "alter", topic, "-c", "max.message.bytes=2000000")
    assert command("produce", topic, str(path), "-p", "1").status == 0
    assert command("consume", topic, "--exit").out == b"x" * 1_000_000 + b"\nlast\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_undone(command: Command, topic: str, codec: str) -> None:
    lines = b"".join(b"%d\n" % i for i in range(1000))
    assert command("produce", topic, "-p", "0", "-z", codec, stdin=lines).status == 0
    assert command("consume", topic, "--exit").out == lines
    printed = command("consume", topic, "--max", "1", "-f", "%a{compression}").out
    assert printed == codec.encode()


@pytest.mark.parametrize("acks", ["all", "-1", "1", "0"])
def test_every_acks_stores_the_records(command: Command, topic: str, acks: str) -> None:
    assert command("produce", topic, "-p", "0", "-a", acks, stdin=b"a\nb\n").status == 0
    assert command("consume", topic, "--max", "2").out == b"a\nb\n"


def test_keys_headers_and_nulls(command: Command, topic: str) -> None:
    options = ["-p", "0", "-K", r"\t", "-k", "fixed", "-H", "a=1", "-H", "b", "-Z"]
    assert command("produce", topic, *options, stdin=b"k\tv\nplain\n\tnull key\nk\t\n").status == 0
    shown = command("consume", topic, "--exit", "--json").out.splitlines()
    headers = [{"key": "a", "value": "1"}, {"key": "b", "value": None}]
    assert [(line["key"], line["value"], line["headers"]) for line in map(json.loads, shown)] == [
        ("k", "v", headers),
        ("fixed", "plain", headers),
        (None, "null key", headers),
        ("k", None, headers),
    ]


def test_a_key_chooses_its_partition_as_it_does_for_every_client(
    command: Command, topic: str
) -> None:
    command("produce", topic, "-K", ":", stdin=b"ada:1\ngrace:2\nada:3\ngrace:4\n")
    placed = command("consume", topic, "--exit", "-f", r"%k %p\n").out.splitlines()
    assert len(placed) == 4
    assert len(set(placed)) == 2, "each key has one partition"


def test_json_lines_are_an_exact_copy(command: Command, topic: str, name: str) -> None:
    command("produce", topic, "-K", ":", "-H", "h=1", stdin=b"k:v\n\xff:\xfe\nplain\n")
    exported = command("consume", topic, "--exit", "--json").out
    command("topic", "create", f"{name}-copy", "-p", "2")
    assert command("produce", f"{name}-copy", "--json", stdin=exported).status == 0
    copied = command("consume", f"{name}-copy", "--exit", "--json").out
    assert sorted(copied.replace(b"-copy", b"").splitlines()) == sorted(exported.splitlines())


def test_a_line_that_is_no_record_is_named_and_those_before_it_are_stored(
    command: Command, topic: str
) -> None:
    done = command(
        "produce", topic, "--json", stdin=b'{"value":"good"}\n{"value":\n{"value":"late"}\n'
    )
    assert done.status == 1
    assert "record 2 of the input: not JSON" in done.err
    assert command("consume", topic, "--exit").out == b"good\n"


def test_a_record_that_the_broker_refuses_is_one_line(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1", "-c", "max.message.bytes=1000")
    done = command("produce", name, stdin=b"x" * 2000)
    assert done.status == 1
    assert "MESSAGE_TOO_LARGE" in done.err
    assert "; -X max.request.size=BYTES sends larger requests" in done.err
    assert done.err.count("\n") == 1


def test_a_topic_or_partition_that_is_not_there_is_one_line(command: Command, topic: str) -> None:
    no_partition = f"UNKNOWN_TOPIC_OR_PARTITION: {topic} has 2 partitions, no partition 9"
    for done, said in (
        (
            command("consume", "no-such-topic", "--exit"),
            "UNKNOWN_TOPIC_OR_PARTITION: there is no topic no-such-topic",
        ),
        (command("consume", topic, "-p", "9", "--exit"), no_partition),
        (command("produce", topic, "-p", "9", stdin=b"x\n"), no_partition),
    ):
        assert done.status == 1
        assert done.err == f"tidemark: {said}\n"


def test_an_empty_input_is_no_records(command: Command, topic: str) -> None:
    assert command("produce", topic).status == 0
    assert command("consume", topic, "--exit").out == b""


@pytest.mark.parametrize(
    ("start", "printed"),
    [
        ("beginning", b"a\nb\nc\n"),
        ("end", b""),
        ("1", b"b\nc\n"),
        ("-2", b"b\nc\n"),
        ("-9", b"a\nb\nc\n"),
        ("@1700000060000", b"b\nc\n"),
        ("@1700000060001", b"c\n"),
        ("2023-11-14T22:15:20Z", b"c\n"),
        ("@-1s", b""),
    ],
)
def test_where_to_begin(command: Command, topic: str, start: str, printed: bytes) -> None:
    lines = b"".join(
        json.dumps({"value": value, "partition": 0, "timestamp": 1_700_000_000_000 + at}).encode()
        + b"\n"
        for value, at in [("a", 0), ("b", 60_000), ("c", 120_000)]
    )
    assert command("produce", topic, "--json", stdin=lines).status == 0
    assert command("consume", topic, "--from", start, "--exit").out == printed


@pytest.mark.parametrize(
    ("places", "printed"),
    [
        (["--until", "2"], b"a\nb\nx\n"),
        (["--until", "0"], b""),
        (["--until", "beginning"], b""),
        (["--until", "end"], b"a\nb\nc\nx\n"),
        (["--until", "99"], b"a\nb\nc\nx\n"),
        (["--until", "-1"], b"a\nb\n"),
        (["--from", "1", "--until", "2", "-p", "0"], b"b\n"),
        (["--from", "2", "--until", "1", "-p", "0"], b""),
        (["--from", "end", "--until", "2"], b""),
        (["--from", "@1700000060000", "--until", "@1700000120000", "-p", "0"], b"b\n"),
        (["--until", "3", "--max", "2", "-p", "0"], b"a\nb\n"),
    ],
)
def test_where_to_end(command: Command, topic: str, places: list[str], printed: bytes) -> None:
    lines = b"".join(
        json.dumps({"value": value, "partition": at, "timestamp": time}).encode() + b"\n"
        for value, at, time in [
            ("a", 0, 1_700_000_000_000),
            ("b", 0, 1_700_000_060_000),
            ("c", 0, 1_700_000_120_000),
            ("x", 1, 1_700_000_000_000),
        ]
    )
    assert command("produce", topic, "--json", stdin=lines).status == 0
    found = command("consume", topic, *places)
    assert (found.status, sorted(found.out)) == (0, sorted(printed))


def test_the_end_of_a_partition_that_is_not_there_is_an_error(command: Command, topic: str) -> None:
    done = command("consume", topic, "-p", "9", "--until", "end")
    assert done.status == 1
    assert "2 partitions, no partition 9" in done.err


def test_a_group_has_no_end(command: Command, topic: str) -> None:
    refused = command("consume", topic, "-g", "g", "--until", "end")
    assert refused.status == 2
    assert "--until is not for groups" in refused.err


def test_an_offset_beyond_the_end_is_said(command: Command, topic: str) -> None:
    done = command("consume", topic, "-p", "0", "--from", "99", "--max", "1")
    assert done.status == 1
    assert "OFFSET_OUT_OF_RANGE" in done.err


def test_with_exit_the_partitions_that_end_before_it_are_named(
    command: Command, topic: str
) -> None:
    command("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    done = command("consume", topic, "--from", "2", "--exit")
    assert (done.status, done.out) == (0, b"c\n")
    assert done.err == f"tidemark: {topic}-1 ends at offset 0, before 2\n"
    assert command("consume", topic, "-p", "0", "--from", "3", "--exit").err == ""


def test_a_record_that_no_request_has_room_for_is_told_how_much_there_is(
    command: Command, topic: str
) -> None:
    done = command("produce", topic, stdin=b"x" * (1 << 20))
    assert done.status == 1
    assert "requests have at most 1048576; -X max.request.size=BYTES" in done.err


@pytest.mark.parametrize("name_of_it", ["max.request.size", "message.max.bytes"])
def test_a_large_record_is_sent_where_one_says_how_large_requests_may_be(
    command: Command, name: str, name_of_it: str
) -> None:
    command("topic", "create", name, "-p", "1", "-c", "max.message.bytes=5000000")
    value, larger = b"x" * 2_000_000, f"{name_of_it}=5000000"
    assert command("produce", name, "-X", larger, stdin=value).status == 0
    assert command("consume", name, "--exit", "-f", "%V").out == b"2000000"
    for no_number in ("5MB", "0", "99999999999999", "9" * 5000):
        wrong = command("produce", name, "-X", f"{name_of_it}={no_number}", stdin=value)
        assert (wrong.status, "expected a number of bytes" in wrong.err) == (2, True)


def test_max_stops_within_a_batch(command: Command, topic: str) -> None:
    command("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    assert command("consume", topic, "--max", "2").out == b"a\nb\n"
    assert command("consume", topic, "--max", "0").out == b""


def test_partitions_can_be_chosen(command: Command, topic: str) -> None:
    command("produce", topic, "-p", "0", stdin=b"zero\n")
    command("produce", topic, "-p", "1", stdin=b"one\n")
    assert command("consume", topic, "-p", "1", "--exit").out == b"one\n"
    assert sorted(command("consume", topic, "--exit").out.splitlines()) == [b"one", b"zero"]


def test_several_topics_at_once(command: Command, topic: str, name: str) -> None:
    command("topic", "create", f"{name}-b", "-p", "1")
    command("produce", topic, stdin=b"x\n")
    command("produce", f"{name}-b", stdin=b"y\n")
    printed = command("consume", topic, f"{name}-b", "--exit", "-f", r"%t=%v\n").out
    assert sorted(printed.splitlines()) == [f"{name}-b=y".encode(), f"{name}=x".encode()]


def test_formats_see_the_batch_and_the_partition(command: Command, topic: str) -> None:
    command("produce", topic, "-p", "1", stdin=b"a\nb\n")
    printed = command(
        "consume", topic, "--exit", "-f", r"%t %p %o %e %[ %| %] %a{timestamp-type}\n"
    ).out
    assert printed == f"{topic} 1 0 0 0 2 2 0\n{topic} 1 1 0 0 2 2 0\n".encode()
    producer = command("consume", topic, "--max", "1", "-f", "%x %y").out.split()
    assert int(producer[0]) >= 0, "acks=all is idempotent"
    assert command("consume", topic, "--max", "1", "--kcat-format", "%t [%p] %o: %s").out == (
        f"{topic} [1] 0: a".encode()
    )


def test_a_template_can_come_from_a_file(command: Command, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "record.jinja"
    path.write_text("{{ topic }}: {{ value|upper }}\n")
    command("produce", topic, "-p", "0", stdin=b"a\n")
    assert command("consume", topic, "--exit", "-t", f"@{path}").out == f"{topic}: A\n".encode()
    assert "No such file" in command("consume", topic, "-t", "@/nowhere").err


def test_a_template_that_fails_prints_the_records_before_it(command: Command, topic: str) -> None:
    command("produce", topic, "-p", "0", stdin=b'{"n":1}\n{}\n')
    done = command("consume", topic, "--exit", "-t", "{{ (value|from_json).n }}\n")
    assert done.status == 1
    assert f"the template fails at {topic}-0 offset 1" in done.err
    assert done.out == b"1\n"
