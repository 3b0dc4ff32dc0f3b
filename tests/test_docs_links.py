"""Every link between the pages leads to a page, a file or a heading that is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for room in ("docs", "benchmarks", "tests") for page in (ROOT / room).rglob("*.md")),
    ]
)


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The file and the heading of each link that stays in the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            file, _, heading = target.partition("#")
            yield file, heading


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings have, as GitHub makes them."""
    texts = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text) for text in texts)
    return {re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for file, heading in links(page):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        if heading:
            assert heading in headings(target), f"{file}#{heading}"


def test_there_are_links_to_look_at() -> None:
    assert sum(len(list(links(page))) for page in PAGES) > 50
