"""docs/configuration.md says what the table of settings says."""

from pathlib import Path

from tidemark.broker.config.reference import render

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_is_what_the_table_makes_of_it() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), (
        "run: python -m tidemark.broker.config.reference > docs/configuration.md"
    )
