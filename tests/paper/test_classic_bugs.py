"""The page that says which test plays which classic bug names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "classic-bugs.md"
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text())))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("path", "test"), NAMED)
def test_a_test_that_the_page_names_exists(path: str, test: str) -> None:
    defined = re.findall(r"^ *(?:async )?def (\w+)\(", (ROOT / path).read_text(), re.MULTILINE)
    assert test in defined
