"""`tidemark user`, against a broker."""

import json
import sys
from pathlib import Path

import click
import pytest
import yaml

from tests.cli.conftest import Command
from tidemark.cli import user
from tidemark.cli.main import run
from tidemark.client.security.sasl import salted_password
from tidemark.testing import BlockingCluster

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
Row = dict[str, object]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(user.PASSWORD_VARIABLE, raising=False)


def listed(command: Command, name: str) -> dict[object, object]:
    rows: list[Row] = json.loads(command("user", "list", "-o", "json").out)
    return {each["mechanism"]: each["iterations"] for each in rows if each["user"] == name}


def done(command: Command, *arguments: str, stdin: bytes = b"") -> None:
    result = command("user", *arguments, stdin=stdin)
    assert (result.status, result.out, result.err) == (0, b"", "")


def test_a_user_is_set_listed_and_deleted(command: Command, name: str) -> None:
    done(command, "set", name, stdin=b"secret\n")
    assert listed(command, name) == {SHA_256: 4096, SHA_512: 4096}
    done(command, "set", name, "--mechanism", "scram-sha-512", "--iterations", "8192", stdin=b"s")
    assert listed(command, name) == {SHA_256: 4096, SHA_512: 8192}
    done(command, "delete", name, "--mechanism", SHA_256)
    assert listed(command, name) == {SHA_512: 8192}
    done(command, "delete", name)
    assert listed(command, name) == {}


def test_list_in_every_form(command: Command, name: str) -> None:
    done(command, "set", name, "--mechanism", SHA_256, stdin=b"secret")
    table = command("user", "list").out.decode().splitlines()
    assert table[0].split() == ["USER", "MECHANISM", "ITERATIONS"]
    assert [name, SHA_256, "4096"] in [line.split() for line in table]
    row = {"user": name, "mechanism": SHA_256, "iterations": 4096}
    assert row in json.loads(command("user", "list", "-o", "json").out)
    assert row in yaml.safe_load(command("user", "list", "-o", "yaml").out)


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those that would be hashed, in place of which a good one is."""
    seen: list[str] = []

    def note(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
        seen.append(password)
        return salted_password(mechanism, "good", salt, iterations)

    monkeypatch.setattr("tidemark.client.admin.users.salted_password", note)
    return seen


def test_where_the_password_comes_from(
    command: Command,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    passwords: list[str],
) -> None:
    file = tmp_path / "password"
    file.write_bytes("of a file, ü \r\n".encode())
    one = ("set", name, "--mechanism", SHA_256)
    done(command, *one, stdin=b"of standard input\n")
    done(command, *one, "--password-file", "-", stdin=b"of standard input, too")
    monkeypatch.setenv(user.PASSWORD_VARIABLE, "of a variable")
    done(command, *one, stdin=b"unread")
    done(command, *one, "--password-file", str(file), stdin=b"unread")
    assert passwords == [
        "of standard input",
        "of standard input, too",
        "of a variable",
        "of a file, ü ",
    ]


def test_a_terminal_is_asked(
    tidemark_session: BlockingCluster,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    passwords: list[str],
) -> None:
    asked: list[dict[str, object]] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

    def prompt(text: str, **how: object) -> str:
        asked.append({"text": text, **how})
        return "typed"

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    arguments = ["--bootstrap", tidemark_session.bootstrap, "user", "set", name]
    assert run([*arguments, "--mechanism", SHA_256]) == 0
    assert passwords == ["typed"]
    assert (asked[0]["hide_input"], asked[0]["confirmation_prompt"]) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "stdin", "hint"),
    [
        (("set", "ada"), b"", "one character or more"),
        (("set", "ada"), b"a\nb\n", "control characters"),
        (("set", "ada"), b"\xff", "not UTF-8"),
        (("set", ""), b"s", "is a variable of the script not set"),
        (("set", "ada", "--mechanism", "PLAIN"), b"s", "scram-sha-256"),
        (("set", "ada", "--iterations", "4095"), b"s", "4096"),
        (("set", "ada", "--iterations", "16385"), b"s", "16384"),
        (("set", "ada", "--password-file", "/none"), b"s", "/none"),
        (("set", "ada", "secret"), b"s", "secret"),
    ],
)
def test_what_cannot_be_says_what_to_give(
    command: Command, arguments: tuple[str, ...], stdin: bytes, hint: str
) -> None:
    refused = command("user", *arguments, stdin=stdin)
    assert refused.status != 0
    assert hint in refused.err


def test_who_is_not_there_is_not_deleted(command: Command, name: str) -> None:
    refused = command("user", "delete", name)
    assert (refused.status, name in refused.err) == (1, True)
