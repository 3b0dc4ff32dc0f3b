"""`tidemark top`, against a broker."""

from tests.cli.conftest import Command


def test_frames_of_a_broker_at_work(command: Command, name: str) -> None:
    command("topic", "create", name, "--partitions", "2")
    assert command("produce", name, stdin=b"one\ntwo\nthree\n").status == 0
    read = command("consume", name, "--group", name, "--max", "1", "--from", "beginning")
    assert read.status == 0
    watched = command("top", "--every", "0.1", "--count", "2")
    assert watched.status == 0
    text = watched.out.decode()
    assert text.count("tidemark top") == 2
    assert "healthy" in text
    (group, *_) = [line.split() for line in text.splitlines() if line.split()[:1] == [name]][-1:]
    topic_rows = [line.split() for line in text.splitlines() if line.split()[:2] == [name, "2"]]
    assert len(topic_rows) == 2, "two partitions, in each frame"
    assert group[2] == "2", "one of three was read"


def test_nobody_there_is_said_at_once(command: Command) -> None:
    refused = command("top", "--bootstrap", "127.0.0.1:1", "--count", "1")
    assert refused.status == 1
    assert "cannot connect to 127.0.0.1:1" in refused.err
