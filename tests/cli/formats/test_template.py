"""Templates: what they can say, and that they can say no more."""

import pytest

from tests.cli.formats.examples import FULL, NULLS, ORDERS, record
from tidemark.cli.formats import template, template_filters
from tidemark.cli.formats.formatter import FormatError
from tidemark.cli.formats.template import compile_template


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("{{ topic }}-{{ partition }} {{ offset }} {{ leader_epoch }}\n", b"orders-3 343 7\n"),
        ("{{ key }}={{ value|upper }}", b"key=VALUE"),
        ("{{ timestamp|date }}", b"2023-11-14T22:13:20Z"),
        ("{{ timestamp|date('%F') }}", b"2023-11-14"),
        ("{% for h in headers %}{{ h.key }}={{ h.value|default('-') }};{% endfor %}",
         b"H1=V1;h2=-;"),
        ("{% if value == 'value' and not key is none %}yes{% else %}no{% endif %}", b"yes"),
        ("{{ 'old' if offset < 100 else 'new' }}", b"new"),
        ("{{ headers[0].key|lower }} {{ headers|length }} {{ (headers|last).key }}", b"h1 2 h2"),
        ("{{ value|hex }} {{ value|base64 }}", b"76616c7565 dmFsdWU="),
        ("{{ value|replace('a', 'oo')|truncate(4) }}", "vool…".encode()),
        ("{{ headers|json }}",
         b'[{"key":"H1","value":"V1"},{"key":"h2","value":null}]'),
    ],
)  # fmt: skip
def test_variables_attributes_filters_if_and_for(text: str, printed: bytes) -> None:
    assert compile_template(text)(FULL, ORDERS) == printed


def test_json_values_are_looked_into() -> None:
    order = record(b'{"user":{"name":"Ada"},"items":[{"n":1},{"n":2}],"total":9.5}')
    text = (
        "{{ (value|from_json).user.name }} {{ (value|from_json).total }} "
        "{% for i in (value|from_json)['items'] %}{{ i.n }}{% if not loop.last %},{% endif %}"
        "{% endfor %}"
    )
    assert compile_template(text)(order, ORDERS) == b"Ada 9.5 1,2"
    pairs = "{% for name, it in value|from_json|items %}{{ name }} {% endfor %}"
    assert compile_template(pairs)(order, ORDERS) == b"user items total "


def test_bytes_that_are_not_text_come_out_as_they_were() -> None:
    assert compile_template("{{ value }}")(record(b"\xff\x00z"), ORDERS) == b"\xff\x00z"


def test_a_name_that_is_not_there_is_an_error_unless_it_has_a_default() -> None:
    with pytest.raises(FormatError, match="'valeu' is undefined"):
        compile_template("{{ valeu }}")(FULL, ORDERS)
    assert compile_template("{{ valeu|default('-') }}")(FULL, ORDERS) == b"-"


def test_null_is_nothing_and_what_json_has_words_for_is_json() -> None:
    assert compile_template("[{{ value }}|{{ value|default('-') }}]")(NULLS, ORDERS) == b"[|-]"
    order = record(b'{"paid":true,"items":[1,null],"note":null}')
    printed = compile_template("{% for name, it in value|from_json|items %}{{ it }} {% endfor %}")
    assert printed(order, ORDERS) == b"true [1,null]  "
    assert compile_template("{{ value|from_json|upper }}")(order, ORDERS) == (
        b'{"PAID":TRUE,"ITEMS":[1,NULL],"NOTE":NULL}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "{{ range(10) }}",
        "{{ value.upper() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ value.format(value) }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ offset + 1 }}",
        "{{ value ~ value }}",
        "{{ [value] }}",
        "{{ {'a': 1} }}",
        "{{ value[1:2] }}",
        "{% set x = value %}",
        "{% macro m() %}{% endmacro %}",
        "{% include 'passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'base' %}",
        "{% block b %}{% endblock %}",
        "{% filter upper %}{% endfilter %}",
        "{% for h in headers recursive %}{% endfor %}",
        "{{ value|attr('__class__') }}",
        "{{ value|map('upper') }}",
        "{{ value|center(1000000000) }}",
        "{{ value is callable }}",
        "{{ value",
        "{% for %}",
        "{{ (" * 10_000,
    ],
)
def test_anything_else_is_refused_when_the_template_is_read(text: str) -> None:
    with pytest.raises(FormatError, match="the template"):
        compile_template(text)


@pytest.mark.parametrize(
    "text", ["{{ value.__class__ }}", "{{ value['__class__'] }}", "{{ headers.__len__ }}"]
)
def test_attributes_do_not_lead_out_of_the_values(text: str) -> None:
    with pytest.raises(FormatError, match="unsafe"):
        compile_template(text)(FULL, ORDERS)
    beyond = text.replace(" }}", ".__mro__ }}")
    with pytest.raises(FormatError, match="unsafe"):
        compile_template(beyond)(FULL, ORDERS)


def test_loops_have_one_budget_for_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "ROUNDS_MAX", 29)
    write = compile_template("{% for a in value %}{% for b in value %}.{% endfor %}{% endfor %}")
    assert write(record(b"1234"), ORDERS) == b"." * 16
    with pytest.raises(FormatError, match="more than 29 rounds"):
        write(record(b"12345"), ORDERS)
    assert write(record(b"1234"), ORDERS) == b"." * 16, "the next record has its own"


def test_the_output_of_a_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "OUTPUT_CHARACTERS_MAX", 100)
    write = compile_template("{% for a in value %}{{ value }}{% endfor %}")
    with pytest.raises(FormatError, match="more than 100 characters"):
        write(record(b"x" * 20), ORDERS)


@pytest.mark.parametrize(
    "text",
    [
        "{{ value|join(value) }}",
        "{{ value|replace('x', value) }}",
        "{{ value|replace('', value) }}",
        "{{ timestamp|date(value) }}",
    ],
)
def test_a_filter_builds_nothing_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(template_filters, "RESULT_CHARACTERS_MAX", 10_000)
    with pytest.raises(FormatError, match=r"more than 100|a result of"):
        compile_template(text)(record(b"x" * 200), ORDERS)


@pytest.mark.parametrize(
    "text",
    ["{{ value|from_json }}", "{{ value|int }}", "{{ offset|length }}", "{{ value|truncate('x') }}",
     "{{ nothing.at.all }}", "{{ topic < offset }}"],
)  # fmt: skip
def test_a_failure_names_the_record(text: str) -> None:
    with pytest.raises(FormatError, match="fails at orders-3 offset 343"):
        compile_template(text)(FULL, ORDERS)
