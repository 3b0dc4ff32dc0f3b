"""`tidemark acl`, against a broker that has an authorizer."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cli.conftest import Command
from tidemark.cli.main import run
from tidemark.testing import BlockingCluster
from tidemark.testing.blocking import open_blocking_cluster

Row = dict[str, str]


@pytest.fixture(scope="module")
def tidemark_session() -> Iterator[BlockingCluster]:
    """In place of the one that all tests share; who does not authenticate may do everything."""
    settings = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    with open_blocking_cluster(settings=settings) as cluster:
        yield cluster


def listed(command: Command, *arguments: str) -> list[Row]:
    rows: list[Row] = json.loads(command("acl", "list", *arguments, "-o", "json").out)
    return rows


def changed(command: Command, *arguments: str) -> None:
    done = command("acl", *arguments)
    assert (done.status, done.out, done.err) == (0, b"", "")


def brief(rows: list[Row]) -> set[tuple[str, str, str]]:
    return {(row["operation"], row["resource"], row["name"]) for row in rows}


def test_what_is_allowed_is_listed_and_removed(command: Command, name: str) -> None:
    named = (name, "--operation", "read", "--topic", "rides")
    changed(command, "allow", *named)
    changed(command, "allow", *named)  # Twice is as good as once.
    row = {
        "principal": f"User:{name}",
        "permission": "allow",
        "operation": "read",
        "resource": "topic",
        "pattern": "literal",
        "name": "rides",
        "host": "*",
    }
    assert listed(command, "--principal", name) == [row]
    removed = command("acl", "remove", *named, "-o", "json")
    assert (removed.status, json.loads(removed.out)) == (0, [row])
    assert listed(command, "--principal", name) == []


def test_each_acl_that_is_refused_is_named(command: Command, name: str) -> None:
    options = (name, "--operation", "read", "--topic", "rides", "--topic", "boats")
    done = command("acl", "allow", *options, "--host", "localhost")
    assert done.status == 1
    for topic in ("rides", "boats"):
        assert f"INVALID_REQUEST: the ACL of User:{name} on TOPIC {topic}: " in done.err
    assert len(done.err.splitlines()) == 1
    assert listed(command, "--principal", name) == []


def test_a_name_from_a_certificate_is_a_user(command: Command, name: str) -> None:
    user = f"CN=urn:{name},O=Acme"
    changed(command, "allow", user, "--operation", "read", "--topic", "rides")
    (row,) = listed(command, "--principal", f"User:{user}")
    assert row["principal"] == f"User:{user}"


def test_list_in_every_form(command: Command, name: str) -> None:
    changed(command, "deny", name, "--operation", "alter-configs", "--cluster", "--host", "::1")
    head, line = command("acl", "list", "--principal", f"User:{name}").out.decode().splitlines()
    assert head.split() == (
        ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "NAME", "HOST"]
    )
    cells = [f"User:{name}", "deny", "alter-configs", "cluster", "literal", "kafka-cluster", "::1"]
    assert line.split() == cells
    rows = listed(command, "--principal", name)
    assert yaml.safe_load(command("acl", "list", "--principal", name, "-o", "yaml").out) == rows


def test_all_operations_on_all_resources_that_are_named(command: Command, name: str) -> None:
    changed(
        command,
        "allow", f"User:{name}", "--operation", "read", "--operation", "Describe-Configs",
        "--topic", "rides", "--topic", "walks", "--group", "g", "--prefixed",
    )  # fmt: skip
    rows = listed(command, "--principal", name)
    assert brief(rows) == {
        (operation, *where)
        for operation in ("read", "describe-configs")
        for where in (("topic", "rides"), ("topic", "walks"), ("group", "g"))
    }
    assert {row["pattern"] for row in rows} == {"prefixed"}


PRODUCER = {
    ("write", "topic", "rides"),
    ("describe", "topic", "rides"),
    ("create", "topic", "rides"),
}
TRANSACTIONAL = {("write", "transactional-id", "t"), ("describe", "transactional-id", "t")}
CONSUMER = {("read", "topic", "rides"), ("describe", "topic", "rides"), ("read", "group", "g")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--producer",), PRODUCER),
        (("--producer", "--transactional-id", "t"), PRODUCER | TRANSACTIONAL),
        (("--consumer", "--group", "g"), CONSUMER),
        (
            ("--producer", "--consumer", "--group", "g", "--transactional-id", "t"),
            PRODUCER | CONSUMER | TRANSACTIONAL,
        ),
    ],
)
def test_a_preset_is_what_such_a_client_needs(
    command: Command, name: str, arguments: tuple[str, ...], expected: set[tuple[str, str, str]]
) -> None:
    changed(command, "allow", name, "--topic", "rides", *arguments)
    assert brief(listed(command, "--principal", name)) == expected
    removed = command("acl", "remove", name, "--topic", "rides", *arguments, "-o", "json")
    assert brief(json.loads(removed.out)) == expected
    assert listed(command, "--principal", name) == []


def test_list_says_which_hold_for_a_resource(command: Command, name: str) -> None:
    changed(command, "allow", name, "--operation", "read", "--topic", f"{name}-rides")
    changed(command, "allow", name, "--operation", "read", "--topic", f"{name}-", "--prefixed")
    changed(command, "allow", name, "--operation", "all", "--topic", "*")
    changed(command, "deny", name, "--operation", "write", "--topic", f"{name}-walks")
    changed(command, "deny", "*", "--operation", "write", "--topic", f"{name}-walks")
    mine = ("--principal", name)

    def names(*arguments: str) -> set[str]:
        return {row["name"] for row in listed(command, *arguments)}

    assert names(*mine, "--topic", f"{name}-rides") == {f"{name}-rides", f"{name}-", "*"}
    assert names(*mine, "--topic", f"{name}-walks") == {f"{name}-walks", f"{name}-", "*"}
    assert names(*mine, "--topic", "x", "--topic", f"{name}-x") == {f"{name}-", "*"}
    assert names(*mine, "--group", f"{name}-rides") == set()
    assert names(*mine, "--cluster") == set()
    assert names(*mine, "--operation", "read") == {f"{name}-rides", f"{name}-"}
    assert names(*mine, "--permission", "deny") == {f"{name}-walks"}
    assert names(*mine, "--host", "10.0.0.1") == set()
    of_walks = listed(command, "--topic", f"{name}-walks", "--permission", "deny")
    assert [row["principal"] for row in of_walks] == ["User:*", f"User:{name}"]


def test_remove_asks_where_it_was_not_told_all(command: Command, name: str) -> None:
    changed(command, "allow", name, "--consumer", "--topic", "rides", "--group", "g")
    before = listed(command, "--principal", name)
    looked = command("acl", "remove", name, "--dry-run", "-o", "json")
    assert (looked.status, json.loads(looked.out)) == (0, before)
    asked = command("acl", "remove", name, "--topic", "rides")
    assert (asked.status, "say --yes" in asked.err) == (2, True)
    assert asked.out.decode().count("rides") == 2
    assert listed(command, "--principal", name) == before
    done = command("acl", "remove", name, "--topic", "rides", "--yes", "-o", "json")
    assert (done.status, json.loads(done.out)) == (0, before[:2])
    assert listed(command, "--principal", name) == before[2:]


def test_remove_takes_names_as_they_are_in_acls(command: Command, name: str) -> None:
    rides = ("--topic", "rides", "--operation", "read")
    changed(command, "allow", name, *rides)
    changed(command, "allow", name, *rides, "--prefixed")
    changed(command, "allow", name, *rides, "--host", "10.0.0.1")
    changed(command, "deny", name, *rides)
    assert command("acl", "remove", name, *rides, "--prefixed").status == 0
    assert command("acl", "remove", name, *rides, "--host", "10.0.0.1").status == 0
    rows = listed(command, "--principal", name)
    assert [(row["permission"], row["pattern"], row["host"]) for row in rows] == [
        ("deny", "literal", "*"),
        ("allow", "literal", "*"),
    ]
    assert command("acl", "remove", name, *rides, "--permission", "deny").status == 0
    assert [row["permission"] for row in listed(command, "--principal", name)] == ["allow"]


def test_to_remove_what_is_not_there_is_an_error(command: Command, name: str) -> None:
    for arguments in (("--operation", "read", "--topic", "rides"), ("--yes",), ("--dry-run",), ()):
        done = command("acl", "remove", name, *arguments)
        assert (done.status, "there is no such ACL" in done.err, done.out) == (1, True, b"")


def test_the_broker_s_reason_is_told(command: Command, name: str) -> None:
    arguments = ("--operation", "read", "--topic", "rides", "--host", "localhost")
    refused = command("acl", "allow", name, *arguments)
    assert refused.status == 1
    assert "INVALID_REQUEST" in refused.err
    assert "localhost" in refused.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("allow", "ada", "--operation", "read"), "on what? Give --topic"),
        (("allow", "ada", "--topic", "t"), "Give --operation, --producer or --consumer"),
        (("deny", "ada", "--topic", "t"), "which operations? Give --operation."),
        (("allow", "ada", "--operation", "red", "--topic", "t"), "'describe-configs'"),
        (
            ("allow", "ada", "--operation", "write", "--group", "g"),
            "no operation write: it has read, describe, delete, describe-configs, alter-configs",
        ),
        (("deny", "ada", "--operation", "read", "--cluster"), "it has create, alter, describe, c"),
        (("allow", "ada", "--producer"), "--producer needs a topic"),
        (("allow", "ada", "--consumer", "--topic", "t"), "--consumer needs a group"),
        (
            ("allow", "ada", "--producer", "--topic", "t", "--cluster"),
            "a cluster has no --producer",
        ),
        (
            ("allow", "ada", "--producer", "--topic", "t", "--operation", "read"),
            "either --producer or --oper",
        ),
        (("allow", "ada", "--operation", "all", "--cluster", "--prefixed"), "is about names"),
        (("allow", "ada", "--operation", "all", "--topic", "*", "--prefixed"), "all names already"),
        (("remove", "ada", "--prefixed"), "is about names"),
        (("remove", "--yes"), "which ones?"),
        (("allow", ":ada", "--operation", "all", "--cluster"), "as in User:alice"),
        (("allow", "user:ada", "--operation", "all", "--cluster"), "write User:ada"),
        (("allow", "", "--operation", "all", "--cluster"), "it is empty"),
        (("allow", "ada", "--operation", "all", "--topic", ""), "it is empty"),
        (("list", "--principal", "a\udcff"), r"b'a\xff' is not UTF-8"),
    ],
)
def test_what_cannot_be_says_what_to_give(
    arguments: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["acl", *arguments])
    refused = capsys.readouterr().err
    assert (status, hint in refused, refused.count("\n")) == (2, True, 1), refused


def test_help_says_which_operations_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("allow", "deny"):
        assert run(["acl", verb, "--help"]) == 0
        page = capsys.readouterr().out
        assert "  transactional id  write, describe, two-phase-commit, all\n" in page
        assert max(map(len, page.splitlines())) <= 80


def test_a_broker_without_an_authorizer_says_that_it_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open_blocking_cluster() as cluster:
        assert run(["acl", "list", "--bootstrap", cluster.bootstrap]) == 1
    refused = capsys.readouterr().err
    assert refused.startswith("tidemark: SECURITY_DISABLED: ")
    assert refused.count("\n") == 1
