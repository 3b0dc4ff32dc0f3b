"""The page about the client: its examples run as they stand, and print what it says."""

import re
from pathlib import Path

import pytest

from tidemark.testing import BlockingCluster

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(5))
def test_an_example_prints_what_the_page_says(
    tidemark: BlockingCluster, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    program, printed = EXAMPLE.findall(PAGE.read_text())[number]
    here = program.replace("127.0.0.1:9092", tidemark.bootstrap)
    exec(compile(here, f"example {number}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == printed


def test_there_are_no_other_examples() -> None:
    assert len(EXAMPLE.findall(PAGE.read_text())) == 5
