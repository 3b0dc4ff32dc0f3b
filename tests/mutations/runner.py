"""Applies mutations to a copy of the tree, and runs the tests that must notice."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutations import Mutation

ROOT = Path(__file__).parent.parent.parent
TEST_SECONDS_MAX = 300
_TESTS_FAILED = 1
_LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one mutation."""

    mutation: Mutation
    killed: bool
    seconds: float
    output: str
    """Of pytest; tells why a mutation that was not killed was not."""


def mutated(text: str, mutation: Mutation) -> str:
    """The file's text without the rule. Raises `ValueError` if the table is stale."""
    if text.count(mutation.old) != 1:
        raise ValueError(
            f"{mutation.name}: its text occurs {text.count(mutation.old)} times in {mutation.file}"
        )
    return text.replace(mutation.old, mutation.new)


def run(mutations: Sequence[Mutation]) -> Iterator[Outcome]:
    """Break one rule after the other, and see whether its test fails."""
    with copy_of_the_tree() as copy:
        for mutation in mutations:
            path = copy / mutation.file
            text = path.read_text()
            path.write_text(mutated(text, mutation))
            started = time.monotonic()
            status, output = _run_tests(copy, [mutation.killed_by])
            path.write_text(text)
            yield Outcome(
                mutation=mutation,
                killed=status == _TESTS_FAILED,
                seconds=time.monotonic() - started,
                output=output,
            )


def failures_of_whole_tree(mutations: Sequence[Mutation]) -> str:
    """What the tests say while nothing is broken: empty if all is well."""
    with copy_of_the_tree() as copy:
        status, output = _run_tests(copy, sorted({m.killed_by for m in mutations}))
    return output if status else ""


@contextmanager
def copy_of_the_tree(commit: str | None = None) -> Iterator[Path]:
    """As it lies; or as it was committed, whatever is being changed in it. Removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidemark-mutations-") as directory:
        copy = Path(directory) / "tree"
        if commit is None:
            shutil.copytree(ROOT, copy, symlinks=True, ignore=_LEFT_OUT)
        else:
            copy.mkdir()
            archive = subprocess.run(
                ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
            )
            subprocess.run(["tar", "-x"], cwd=copy, input=archive.stdout, check=True)
        yield copy


def _run_tests(copy: Path, nodes: Sequence[str]) -> tuple[int, str]:
    """Pytest's status and output; a test that hangs has failed."""
    # The copy's packages, not those that the environment has installed. No byte code: a file
    # that is changed twice within a second could be taken for unchanged.
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["TIDEMARK_TRIES"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *nodes]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TEST_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return _TESTS_FAILED, "timed out"
    return done.returncode, done.stdout + done.stderr
