"""The command as a whole: how it lists itself, and how it fails."""

import subprocess
import sys
from collections.abc import Sequence

import click
import pytest

from tidemark.cli.main import NOUNS, cli, run

NOBODY = "127.0.0.1:1"  # Nothing listens there.


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.parametrize("noun", NOUNS)
def test_the_table_says_of_each_noun_what_the_noun_says_of_itself(noun: str) -> None:
    command = cli.get_command(click.Context(cli), noun)
    assert command is not None
    assert command.get_short_help_str(limit=100) == NOUNS[noun].help


def test_listing_the_commands_imports_none_of_them_and_nothing_heavy() -> None:
    loaded = python(
        "import sys\n"
        "from tidemark.cli.main import run\n"
        "assert run(['--help']) == 0\n"
        "print([m for m in sys.modules], file=sys.stdout)"
    )
    for heavy in ("trio", "rich", "jinja2", "yaml", "numpy", "starlette", "tidemark.client",
                  "tidemark.cli.topic", "construct"):  # fmt: skip
        assert f"'{heavy}'" not in loaded, heavy


def test_a_broker_imports_nothing_that_only_other_commands_need() -> None:
    loaded = python(
        "import sys\n"
        "from tidemark.cli.main import run\n"
        "assert run(['serve', '--set', 'no.such.setting=1']) == 2\n"
        "import tidemark.broker.server\n"
        "print([m for m in sys.modules], file=sys.stdout)"
    )
    for heavy in ("tidemark.client", "tidemark.testing", "asyncio", "structlog", "rich", "jinja2",
                  "numpy", "pyarrow", "multiprocessing", "zstandard", "cramjam",
                  "bdb"):  # fmt: skip
        assert f"'{heavy}'" not in loaded, heavy


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "tidemark 0.1.0\n"


def test_a_broker_is_refused_where_none_can_run_and_it_is_said_where_one_can(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr("select.epoll")
    assert run(["serve"]) == 1
    assert "tidemark: brokers run on Linux only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nosuch"], "No such command 'nosuch'. Try 'tidemark --help'."),
        (["topci"], "No such command 'topci'. Did you mean 'topic'? Try 'tidemark --help'."),
        (
            ["topic", "nosuch"],
            "There is add-partitions, alter, create, delete, describe, list, trim. Try",
        ),
        (["topic", "consume", "t"], "No such command 'consume'. There is 'tidemark consume'. Try"),
        (["topic", "list", "-o", "xml"], "'xml' is not one of 'table', 'wide', 'json', 'yaml'"),
        (["topic", "create", "t", "-c", "flush"], "'flush' is not KEY=VALUE"),
        (["topic", "create", "t", "--observers", ","], "neither a number of observers nor"),
        (["topic", "create", "t", "--observers", "-1"], "neither a number of observers nor"),
        (["topic", "create", "t", "--observers", "99999999999,"], "is above 2147483647"),
        (["topic", "create", "t", "-r", "40000"], "40000 is above 32767"),
        (["topic", "alter", "t"], "say what to change"),
        (["broker", "alter", "1"], "say what to change"),
        (["group", "alter", "g"], "say what to change"),
        (["group", "reset", "g", "--to", "end", "--topic", ""], "it is empty: is a variable"),
        (["txn", "abort", "--topic", ""], "it is empty: is a variable"),
        (["quota", "set", "--user", "u", "--client", "", "--fetch", "1"], "it is empty: is a"),
        (["consume", "t", "--template", "@/nowhere"], "@/nowhere: No such file or directory"),
        (["bench", "-c", "=os"], "'=os' is not KEY=VALUE"),
        (["bench", "--against-config", "flush"], "'flush' is not KEY=VALUE"),
        (["topic", "add-partitions", "t"], "say either --add N or --total N"),
        (["consume"], "Missing argument 'TOPIC…'"),
        (["consume", "t", "--from", "nowhere"], "'nowhere' is not a place in a log"),
        (["consume", "t", "--from", "9" * 23], "further off than a record's can be"),
        (["consume", "t", "-f", "%z"], "%z is not a token"),
        (["consume", "t", "--template", "{{ range(9) }}"], "Call is not allowed"),
        (["consume", "t", "--json", "-f", "%v"], "exclude each other"),
        (["consume", "t", "-n", "9" * 23], "is above 9223372036854775807"),
        (["consume", ""], "it is empty: is a variable"),
        (["consume", "t", "-g", ""], "it is empty: is a variable"),
        (["consume", "t", "-g", "g\udcff"], r"b'g\xff' is not UTF-8"),
        (["group", "describe", "g\udcff"], r"b'g\xff' is not UTF-8"),
        (["group", "delete", "g", "g\udcff"], r"b'g\xff' is not UTF-8"),
        (["group", "reset", "g\udcff", "--to", "end"], r"b'g\xff' is not UTF-8"),
        (["group", "list", "-s", "Stale"], "is not one of"),
        (["txn", "list", "-s", "Open"], "is not one of"),
        (["txn", "describe", "t\udcff"], r"b't\xff' is not UTF-8"),
        (["topic", "delete", ""], "it is empty: is a variable"),
        (["topic", "describe", "t\udcff"], r"b't\xff' is not UTF-8"),
        (["leader", "list", "t", ""], "it is empty: is a variable"),
        (["replica", "list", "t\udcff"], r"b't\xff' is not UTF-8"),
        (["export", "t\udcff", "--to", "f"], r"b't\xff' is not UTF-8"),
        (["-X", "client.id=c\udcff", "topic", "list"], r"client.id: b'c\xff' is not UTF-8"),
        (["topic", "create", "t", "-p", "99999999999"], "99999999999 is above 2147483647"),
        (["topic", "create", "t", "-p", "many"], "'many' is not a valid integer."),
        (["bench", "--rate", "fast"], "'fast' is not a valid number."),
        (["leader", "move", "t", "0", "--to", "99999999999"], "is above 2147483647"),
        (["leader", "move", "t", "0", "--to", "1", "--timeout", "nan"], "finite numbers"),
        (["leader", "move", "t", "0", "--to", "1", "--timeout", "1e9"], "is above 2147483"),
        (["broker", "status", "99999999999"], "is above 2147483647"),
        (["bench", "--rate", "inf"], "inf is not in the range of finite numbers"),
        (["group", "reset", "g", "--to", "end", "--topic", "t:5-3"], "5-3 is no range"),
        (["group", "delete", "g", "--topic", "t:" + "9" * 5000], "say partitions as in"),
        (["group", "reset", "g", "--to", "end", "--topic", f"t:0-{10**15}"], "is no range"),
        (["export", "t", "--to", "f", "-c", "key,key"], "the column 'key' twice"),
        (["produce", "t", "-K", ""], "a delimiter cannot be empty"),
        (["produce", "t", "-H", "=v"], "'=v' is not a header"),
        (["produce", "t", "--json", "-k", "key"], "come from the lines"),
        (["produce", "t", "/nowhere/at/all"], "No such file or directory"),
        (["topic", "list", "--bootstrap", ""], "no bootstrap address: give one as host:port"),
        (["topic", "list", "--bootstrap", "http://a:1"], "leave out what is before the host"),
        (["-X", "security.protocol=TLS", "topic", "list"], "must be one of PLAINTEXT, SSL"),
        (["serve", "--listen", "foo"], "it takes an address with a port, as host:port"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(
    arguments: Sequence[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert complaint in printed.err
    assert printed.err.startswith("tidemark: ")
    assert printed.err.count("\n") == 1


def test_the_environment_says_where_the_settings_of_a_broker_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_CONFIG", "/nowhere/tidemark.toml")
    assert run(["serve"]) == 2
    assert "cannot read the configuration file /nowhere/tidemark.toml" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["topic"]])
def test_a_noun_by_itself_shows_what_it_takes(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("Usage: tidemark")
    assert "Commands:" in lines


@pytest.mark.parametrize(
    "arguments",
    [["--bootstrap", NOBODY, "topic", "list"], ["topic", "list", "--bootstrap", NOBODY]],
)
def test_a_broker_that_is_not_there_is_one_line_and_status_1(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    error = capsys.readouterr().err
    assert NOBODY in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("address", ["127.0.0.1:port", "127.0.0.1:70000", ":9092"])
def test_an_address_that_is_none_is_called_so(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--bootstrap", address, "topic", "list"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tidemark: '{address}' is not a bootstrap address: give it as host")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("a..b:1", "cannot connect to a..b:1: that is no host's name"),
        ("x" * 70 + ":1", ":1: that is no host's name"),
        ("h\udcff:1", ":1: that is no host's name"),
    ],
    ids=["an empty label", "a long label", "not UTF-8"],
)
def test_a_host_that_cannot_be_is_called_so(
    address: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--bootstrap", address, "topic", "list"]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_the_brokers_can_be_named_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_BOOTSTRAP", NOBODY)
    assert run(["topic", "list"]) == 1
    assert NOBODY in capsys.readouterr().err
    assert run(["topic", "list", "--bootstrap", "127.0.0.1:2"]) == 1
    assert "127.0.0.1:2" in capsys.readouterr().err


def test_only_verbose_shows_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--bootstrap", NOBODY, "topic", "list"])
    assert "Traceback" not in capsys.readouterr().err
    run(["-v", "--bootstrap", NOBODY, "topic", "list"])
    assert "Traceback" in capsys.readouterr().err


def test_completion_knows_the_nouns_and_their_verbs() -> None:
    code = (
        "import os; os.environ |= {{'_TIDEMARK_COMPLETE': 'bash_complete', "
        "'COMP_WORDS': '{}', 'COMP_CWORD': '{}'}}\n"
        "from tidemark.cli.main import main; main()"
    )
    assert python(code.format("tidemark topi", 1)) == "plain,topic\n"
    assert "plain,describe" in python(code.format("tidemark topic ", 2)).splitlines()
