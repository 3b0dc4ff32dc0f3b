from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol.buffers import Buffers

VIEWS: dict[str, Callable[[memoryview], object]] = {
    "memoryview": lambda view: view[10:20],
    "readonly": lambda view: view.toreadonly(),
    "numpy": lambda view: np.frombuffer(view, np.uint8)[5:],
    "Arrow": pa.py_buffer,
    "a slice of an Arrow array": lambda view: pa.Array.from_buffers(
        pa.uint8(), len(view), [None, pa.py_buffer(view)]
    )[7:9],
}


def address(view: memoryview) -> int:
    return int(pa.py_buffer(view).address)


def test_a_buffer_that_nobody_looks_into_is_given_out_again() -> None:
    buffers = Buffers()
    first = buffers.take(1000)
    was = address(first)
    del first
    for size in (1000, 900, 1001):
        assert address(buffers.take(size)) == was


@pytest.mark.parametrize("view_of", VIEWS.values(), ids=VIEWS)
def test_what_somebody_looks_into_is_left_to_him(view_of: Callable[[memoryview], object]) -> None:
    buffers = Buffers()
    first = buffers.take(1000)
    was = address(first)
    view = view_of(first)
    del first
    assert address(buffers.take(1000)) != was
    del view
    assert address(buffers.take(1000)) == was


@given(steps=st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 6)), max_size=30))
def test_each_has_as_much_as_was_asked_for_to_itself(steps: list[tuple[int, int]]) -> None:
    """However many are kept, and for however long."""
    buffers, kept = Buffers(), list[tuple[memoryview, bytes]]()
    for index, (size, let_go) in enumerate(steps):
        del kept[:let_go]
        view = buffers.take(size)
        content = bytes([index]) * size
        view[:] = content
        kept.append((view, content))
        assert all(one == content for one, content in kept)
