"""`tidemark quota`, against a broker."""

import json

import pytest

from tests.cli.conftest import Command


def quotas(command: Command) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(command("quota", "list", "-o", "json").out)
    return rows


def test_quotas_are_set_listed_and_removed(command: Command, name: str) -> None:
    command("quota", "set", "--user", name, "--client-default", "--produce", "1000")
    command("quota", "set", "--user", name, "--client-default", "--request", "12.5")
    row = {"user": name, "client": "<default>", "produce": 1000, "fetch": None, "request": 12.5}
    assert row in quotas(command)
    command("quota", "remove", "--user", name, "--client-default", "--produce")
    assert {**row, "produce": None} in quotas(command)
    command("quota", "remove", "--user", name, "--client-default")
    assert all(each["user"] != name for each in quotas(command))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("set", "--produce", "5"), "--user"),
        (("set", "--user", "ada"), "--produce"),
        (("set", "--user", "ada", "--fetch", "0"), "x>=1"),
        (("remove", "--user", "ada", "--user-default"), "exclude"),
    ],
)
def test_what_cannot_be_says_what_to_give(
    command: Command, arguments: tuple[str, ...], hint: str
) -> None:
    refused = command("quota", *arguments)
    assert (refused.status, hint in refused.err) == (2, True)
