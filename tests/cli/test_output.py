"""Tables, JSON and YAML."""

import io
import json
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    cell,
    notice,
    plain_table,
    print_rows,
    print_sections,
    progress,
    render_table,
)

ROWS: list[dict[str, Json]] = [
    {"name": "orders", "partitions": 12, "id": "a1"},
    {"name": "a-longer-name", "partitions": 1, "id": None},
]
COLUMNS = [Column("name"), Column("partitions"), Column("id", wide=True)]


def test_numbers_stay_to_the_right_where_some_are_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows([{"lag": 1200}, {"lag": None}, {}], [Column("lag")], Form.TABLE)
    assert capsys.readouterr().out == " LAG\n1200\n   -\n   -\n"


def test_a_table_has_numbers_to_the_right_and_no_spaces_at_line_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(ROWS, COLUMNS, Form.TABLE)
    assert capsys.readouterr().out == (
        "NAME           PARTITIONS\n"
        "orders                 12\n"
        "a-longer-name           1\n"
    )  # fmt: skip


values = st.none() | st.integers() | st.booleans() | st.text("a 表e\u0301\n\x1b", max_size=6)


@given(rows=st.lists(st.fixed_dictionaries({"a": values, "b": values, "c": values}), max_size=5))
def test_a_table_in_a_pipe_is_the_one_that_a_terminal_has_room_for(
    rows: list[dict[str, Json]],
) -> None:
    columns = [Column("a"), Column("b"), Column("c", heading="title")]
    console = Console(file=io.StringIO(), width=1000)
    assert plain_table(rows, columns) == render_table(rows, columns, console)


def test_wide_shows_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Form.WIDE)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "orders                 12  a1",
        "a-longer-name           1  -",
    ]


def test_no_rows_are_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], COLUMNS, Form.TABLE)
    assert capsys.readouterr().out == "NAME  PARTITIONS\n"


def test_json_and_yaml_carry_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Form.JSON)
    assert json.loads(capsys.readouterr().out) == ROWS
    print_rows(ROWS, COLUMNS, Form.YAML)
    assert yaml.safe_load(capsys.readouterr().out) == ROWS


@pytest.mark.parametrize(("form", "parse"), [(Form.JSON, json.loads), (Form.YAML, yaml.safe_load)])
def test_json_and_yaml_are_valid_where_standard_output_is_not_utf_8(
    monkeypatch: pytest.MonkeyPatch, form: Form, parse: Callable[[str], object]
) -> None:
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, "latin-1", errors="backslashreplace", write_through=True)
    monkeypatch.setattr("sys.stdout", stream)
    rows: list[dict[str, Json]] = [{"group": "größe €"}]
    print_rows(rows, COLUMNS, form)
    assert parse(printed.getvalue().decode("latin-1")) == rows


def test_a_pipe_gets_lines_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"name": "x" * 500}], [Column("name")], Form.TABLE)
    assert capsys.readouterr().out.splitlines() == ["NAME", "x" * 500]


def test_a_terminal_gets_the_last_column_folded_where_that_leaves_it_some_room() -> None:
    console = Console(file=io.StringIO(), width=30, color_system=None)
    rows: list[dict[str, Json]] = [{"n": 12, "why": f"member {'x' * 30} left"}]
    assert render_table(rows, [Column("n"), Column("why")], console) == (
        " N  WHY\n"
        "12  member\n"
        f"    {'x' * 26}\n"
        "    xxxx left\n"
    )  # fmt: skip


def test_no_number_is_broken_to_fit_a_terminal() -> None:
    """With 80 columns, `cluster status` showed a broker's port and its free bytes in two lines."""
    console = Console(file=io.StringIO(), width=20, color_system=None)
    rows: list[dict[str, Json]] = [
        {"address": "127.0.0.1:9092", "free": 66579919360, "trouble": None}
    ]
    columns = [Column("address"), Column("free"), Column("trouble")]
    assert render_table(rows, columns, console) == (
        "ADDRESS                FREE  TROUBLE\n"
        "127.0.0.1:9092  66579919360  -\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (0, "0"),
        ([1, 2], "1,2"),
        ([], "-"),
        ({"stable": 1, "empty": 2}, "stable=1, empty=2"),
        ("[bold]✓", "[bold]✓"),
        ("\x1b[31mred\n", r"\x1b[31mred\n"),
    ],
)
def test_a_cell_shows_its_value_and_never_a_control_character(value: object, text: str) -> None:
    assert cell(value) == text  # type: ignore[arg-type]  # parametrize's values are objects


def test_a_description_is_facts_and_the_tables_that_have_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sections = [
        Section(title="partitions", rows=[{"p": 0}], columns=[Column("p")]),
        Section(title="configs", rows=[], columns=[Column("name")]),
    ]
    print_sections({"name": "t"}, {"topic": "t", "parts": 1}, sections, Form.TABLE)
    assert capsys.readouterr().out == "TOPIC  t\nPARTS  1\n\nPARTITIONS\nP\n0\n"
    print_sections({"name": "t"}, {"topic": "t"}, sections, Form.JSON)
    assert json.loads(capsys.readouterr().out) == {"name": "t"}


def test_notices_and_progress_are_for_people_only(capsys: pytest.CaptureFixture[str]) -> None:
    notice("created orders")
    with progress("reading", total=10) as advance:
        advance(10)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
