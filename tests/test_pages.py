"""What the pages have one type is what there is: commands, programs, settings, and links.

`docs/cli.md`, `client.md`, `spark.md` and `testing.md` have tests of their own, which run their
examples. Here each command of any page is read as the command line reads it, and the first minutes
are run.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.forkserver import open_forkserver
from tidemark.broker.config import load_settings
from tidemark.cli.failures import one_line
from tidemark.cli.main import cli
from tidemark.testing import BlockingCluster

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/**/*.md")])
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(tidemark [a-z][^`\n]*)`")
PLACEHOLDER = re.compile(r"^\[?[A-Z]+\]?$")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds."""
    return [text for kind, text in FENCED.findall(page.read_text()) if kind in kinds]


def lines(page: Path) -> Iterator[str]:
    """The lines of a page that a shell is given."""
    for block in blocks(page, "sh"):
        yield from block.replace("\\\n", " ").splitlines()
    for block in blocks(page, "console"):
        for line in block.replace("\\\n>", " ").splitlines():
            if line.startswith(("$ ", "> ")):
                yield line[2:]
    for line in FENCED.sub("", page.read_text()).splitlines():
        if line.startswith("    tidemark "):
            yield line
        # In a table, a bar of the text is escaped.
        yield from (found.replace("\\|", "|") for found in INLINE.findall(line))


def commands(line: str) -> Iterator[list[str]]:
    """The arguments of each `tidemark` in a line of the shell's."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] | None = None
    for token in lexer:
        if command is not None and set(token) <= set("|&;<>()"):
            yield command
            command = None
        elif token == "tidemark":
            command = []
        elif command is not None and token != "…":
            filled = re.sub(r"\$\w+", "1", token)
            command.append("1" if PLACEHOLDER.match(filled) else filled)
    if command is not None:
        yield command


def read(arguments: list[str]) -> None:
    """As the command line does, without running anything. Raises `click.UsageError`."""
    name: str = "tidemark"
    command: click.Command = cli
    parent: click.Context | None = None
    while True:
        context = command.make_context(name, arguments, parent=parent)
        if not isinstance(command, click.Group):
            return
        _, found, arguments = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert found is not None
        name, command, parent = found.name or "", found, context


def complaint(command: list[str]) -> str | None:
    """What is wrong with one, if anything."""
    try:
        read(command)
    except (click.MissingParameter, click.BadOptionUsage, click.exceptions.NoArgsIsHelpError):
        return None  # it is only mentioned
    except click.exceptions.Exit:
        return None  # --help
    except click.UsageError as error:
        said = one_line(error)
        # The files of the examples are not here.
        is_missing = re.search(r"does not exist|No such file", said) is not None
        return None if is_missing else f"{shlex.join(command)}: {said}"
    return None


@every_page
def test_a_command_of_a_page_is_one_that_there_is(page: Path) -> None:
    found = [command for line in lines(page) for command in commands(line) if command]
    assert [said for command in found if (said := complaint(command))] == []


def test_the_commands_of_the_pages_are_found() -> None:
    found = [each for page in PAGES for line in lines(page) for each in commands(line)]
    assert len(found) > 150
    assert ["topic", "trim", "orders", "--before", "2", "--partition", "0", "--yes"] in found
    assert complaint(["topic", "trim", "orders", "--after", "2"]) is not None


@every_page
def test_no_page_installs_the_other_project_of_this_name(page: Path) -> None:
    """It is on PyPI, and has a command of the same name."""
    assert re.findall(r"pip install .*\btidemark\b.*", page.read_text()) == []


@every_page
def test_a_program_of_a_page_is_python(page: Path) -> None:
    for number, program in enumerate(blocks(page, "python")):
        compile(program, f"{page.name}, block {number}", "exec")


def test_what_the_configuration_s_page_sets_is_taken(tmp_path: Path) -> None:
    examples = blocks(ROOT / "docs" / "configuration.md", "toml")
    assert len(examples) == 8
    for example in examples:
        # The first one shows two ways to say the same.
        for part in example.split("\n\n") if "retention" in example else [example]:
            tomllib.loads(part)
            (tmp_path / "broker.toml").write_text(part)
            load_settings(file=tmp_path / "broker.toml")


@every_page
def test_a_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", FENCED.sub("", page.read_text())):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_first_minutes_of_the_readme(
    tidemark: BlockingCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second terminal's, and the programs that follow, against a broker of their own."""
    readme = ROOT / "README.md"
    (second,) = (block for block in blocks(readme, "sh") if "| tidemark produce rides" in block)
    with open_forkserver() as command:
        environment = os.environ | {
            "TIDEMARK_BOOTSTRAP": tidemark.bootstrap,
            "PATH": f"{command.parent}:{os.environ['PATH']}",
        }
        script = second.split("\n", 1)[1].replace("127.0.0.1:9644", tidemark.http)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("berlin\nparis\nTOPIC       rides\n")
    assert "\ntidemark_requests_total{" in done.stdout
    produce, consume, spark, test = blocks(readme, "python")
    for program in (produce, consume):
        exec(
            compile(program.replace("127.0.0.1:9092", tidemark.bootstrap), "README.md", "exec"), {}
        )
    assert "b'carol' b'rome'" in capsys.readouterr().out
    assert "session()" in spark  # it is what docs/spark.md has, too
    (tmp_path / "test_it.py").write_text(test)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
