"""The tables of handlers, whose modules are imported when a row is used."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tidemark.broker.handlers import BETWEEN_BROKERS, CHANGES, HANDLERS
from tidemark.broker.handlers.change import Change
from tidemark.protocol.registry import APIS


@pytest.mark.parametrize("key", HANDLERS)
def test_each_row_of_the_table_is_there(key: int) -> None:
    assert APIS[key].speaks(APIS[key].max_version)
    assert callable(HANDLERS[key])


def test_every_handler_has_a_row() -> None:
    spec = find_spec("tidemark.broker.handlers")
    assert spec is not None
    assert spec.origin is not None
    named = {path.stem for path in Path(spec.origin).parent.glob("*.py")}
    apis = {api.module for api in APIS.values()}
    assert {APIS[key].module for key in HANDLERS} == named & apis


def test_what_is_the_leaders_business_says_so() -> None:
    assert all(isinstance(change, Change) for change in CHANGES.values())
    assert all(CHANGES[key].response is APIS[key].response for key in CHANGES)


def test_to_look_whether_there_is_a_row_needs_none() -> None:
    assert 0 in HANDLERS
    assert 4 not in HANDLERS
    with pytest.raises(KeyError):
        HANDLERS[4]
    assert set(BETWEEN_BROKERS) < set(HANDLERS)
