"""Descriptors that really run out, in the process of the test."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process can open nothing in the block; what is open stays so."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
