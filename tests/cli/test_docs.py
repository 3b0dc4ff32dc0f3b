"""Every example of `docs/cli.md` does what the page says.

A `$ ` line is a command, `> ` lines belong to it, what follows is its output; `...` stands for
anything.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.forkserver import open_forkserver
from tidemark.testing import BlockingCluster

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


class Example(NamedTuple):
    """One command of the page, the line it is on, and the output that stands below it."""

    line: int
    command: str
    output: str


def examples(page: str) -> Iterator[Example]:
    for block in re.finditer(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        first = page.count("\n", 0, block.start(1)) + 1
        for match in re.finditer(
            r"^\$ (.*\n(?:> .*\n|>\n)*)((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE
        ):
            command = re.sub(r"^> ?", "", match[1], flags=re.MULTILINE)
            yield Example(first + block[1].count("\n", 0, match.start()), command, match[2])


def matches(expected: str, printed: str) -> bool:
    return (
        re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), printed, re.DOTALL) is not None
    )


@pytest.fixture(scope="session")
def tidemark_settings() -> Mapping[str, str]:
    """The page shows ACLs, too; all else is open to who does not authenticate."""
    return {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}


@pytest.fixture
def bin_directory() -> Iterator[Path]:
    with open_forkserver() as command:
        yield command.parent


def test_the_examples_do_what_the_page_says(
    tidemark: BlockingCluster, bin_directory: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    environment = os.environ | {
        "TIDEMARK_BOOTSTRAP": tidemark.bootstrap,
        "DATA_DIR": str(tidemark.data_dir),
        "PATH": f"{bin_directory}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    found = list(examples(PAGE.read_text()))
    assert len(found) > 40
    for example in found:
        done = subprocess.run(
            ["bash", "-c", example.command],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=30,
            check=False,
        )
        printed = done.stdout.decode()
        assert matches(example.output, printed), (
            f"docs/cli.md:{example.line}: $ {example.command}expected:\n{example.output}"
            f"printed:\n{printed}"
        )
