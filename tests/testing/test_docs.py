"""The page about testing: its examples run as they stand, and it leaves no verb out."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

from tidemark.testing import BlockingCluster, Cluster

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
INSIDE = {"broker", "brokers"}
"""For looking inside, on the brokers' own thread: not for the blocking twin."""
OWN = {"not_in_time"}
"""For the twin."""


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")} - OWN


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
    for number, example in enumerate(examples()):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^6 passed", ran.stdout, re.MULTILINE), ran.stdout


def test_the_blocking_twin_has_every_verb() -> None:
    assert public(BlockingCluster) == public(Cluster) - INSIDE


def test_every_verb_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert {name for name in public(Cluster) if f"`{name}`" not in page} == set()
