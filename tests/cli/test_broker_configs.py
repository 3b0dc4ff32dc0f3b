"""`tidemark broker describe` and `alter` against a broker."""

import json

from tests.cli.conftest import Command


def configs(command: Command, *broker: str) -> dict[str, tuple[str, str]]:
    """Values and sources of those that are not at their default."""
    document = json.loads(command("broker", "describe", *broker, "-o", "json").out)
    return {
        each["name"]: (each["value"], each["source"])
        for each in document["configs"]
        if each["source"] != "default"
    }


def test_a_default_is_altered_for_all_brokers_and_for_one(command: Command) -> None:
    assert command("broker", "alter", "-c", "log.retention.ms=5000", "--dry-run").status == 0
    assert configs(command) == {}
    assert command("broker", "alter", "-c", "log.retention.ms=5000").status == 0
    assert command("broker", "alter", "1", "-c", "log.retention.ms=6000").status == 0
    assert configs(command) == {"log.retention.ms": ("5000", "dynamic_default_broker")}
    assert configs(command, "1")["log.retention.ms"] == ("6000", "dynamic_broker")
    table = command("broker", "describe", "1").out.decode()
    assert ["log.retention.ms", "6000", "dynamic_broker"] in [
        line.split() for line in table.splitlines()
    ]
    assert command("broker", "alter", "1", "-d", "log.retention.ms").status == 0
    assert command("broker", "alter", "-d", "log.retention.ms").status == 0
    assert command("broker", "describe").out == b"BROKER  all\n"
    assert "log.retention.ms" not in configs(command, "1")
    assert b"log.retention.ms" in command("broker", "describe", "1", "-o", "wide").out


def test_a_setting_of_the_file_is_said_to_be_one(command: Command) -> None:
    done = command("broker", "alter", "1", "-c", "node.id=2")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "change its file and start it again" in done.err


def test_a_broker_that_is_not_there_has_no_settings(command: Command) -> None:
    for arguments in (["describe", "9"], ["alter", "9", "-c", "log.retention.ms=1"]):
        done = command("broker", *arguments)
        assert done.status == 1
        assert "broker 9" in done.err
