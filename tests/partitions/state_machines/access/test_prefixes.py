"""Names are held against prefixes in order, not against each."""

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.access.prefixes import begins_with_one, outermost

NAMES = st.text("ab\x00\N{SNOWMAN}\N{SNAKE}", max_size=6)
PREFIXES = st.lists(NAMES.filter(bool), max_size=8)


@given(name=NAMES, prefixes=PREFIXES)
def test_a_name_begins_with_one_of_the_outermost_if_with_any(
    name: str, prefixes: list[str]
) -> None:
    begins = any(name.startswith(prefix) for prefix in prefixes)
    assert begins_with_one(name, outermost(prefixes)) is begins


@given(prefixes=PREFIXES)
def test_the_outermost_begin_with_no_other(prefixes: list[str]) -> None:
    kept = outermost(prefixes)
    assert len(kept) == len(set(kept))
    assert not any(one.startswith(other) for one in kept for other in kept if one is not other)
