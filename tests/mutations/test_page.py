"""The table of planted bugs is written row by row."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mutations.page import BEGIN, END, NOTHING, Row, put, rows_of, with_rows
from tests.mutations.planted import PLANTED
from tests.mutations.simulator import PAGE

AREAS = {"Votes": ("one vote", "a durable vote"), "Logs": ("no gap",)}
EMPTY = f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n"


def row(name: str, *, checker: str = "a judge", where: str = "core, 1") -> Row:
    return Row(name=name, checker=checker, where=where, simulated="0.1 min", cpu="2.0 s")


def test_what_is_written_is_read_back_in_the_order_of_the_areas() -> None:
    rows = {each.name: each for each in (row("no gap"), row("one vote", where=""))}
    page = with_rows(EMPTY, rows, AREAS)
    assert list(rows_of(page).values()) == [row("one vote", where=""), row("no gap")]
    assert page.startswith("Before.\n\n")
    assert page.endswith(f"{END}\n\nAfter.\n")
    assert with_rows(page, rows_of(page), AREAS) == page


def test_a_row_takes_the_place_of_what_was_said_of_its_rule(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(EMPTY)
    put(path, row("one vote", where="core, 7 †"), AREAS)
    put(path, row("no gap", checker=NOTHING, where=""), AREAS)
    page = path.read_text()
    assert rows_of(page)["one vote"].is_stale
    assert not rows_of(page)["no gap"].is_noticed
    assert (
        "3 rules, of which 1 are noticed and 1 are not; 1 rows (†) are of an earlier tree. "
        "Not hunted yet: *a durable vote*." in page
    )
    put(path, row("one vote"), AREAS)
    assert list(rows_of(path.read_text())) == ["one vote", "no gap"]
    assert "†" not in path.read_text()


def test_a_row_knows_the_seed_that_noticed() -> None:
    assert row("one vote", where="core, 312 (*changes at once*)").found_at == ("core", 312)
    assert row("one vote", where="full, 7 †").found_at == ("full", 7)
    assert row("one vote", checker=NOTHING, where="(*late markers*)").found_at is None


def test_a_rule_that_is_planted_no_more_is_left_out() -> None:
    page = with_rows(EMPTY, {"gone": row("gone")}, AREAS)
    assert rows_of(page) == {}


def test_two_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(EMPTY)
    names = tuple(f"rule {number}" for number in range(40))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: put(path, row(name), {"Votes": names}), names))
    assert list(rows_of(path.read_text())) == list(names)


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table"):
        rows_of("nothing here")


def test_the_page_is_as_it_is_written() -> None:
    page = PAGE.read_text()
    assert with_rows(page, rows_of(page), PLANTED) == page
