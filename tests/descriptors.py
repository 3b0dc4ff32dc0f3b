"""Descriptors that really run out, in the process of the test."""

import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process can open nothing in the block; what is open stays so."""
    with _limited_to(0):
        yield


@contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    """This process can open only so many files more in the block."""
    # The limit is one of numbers, of which the lowest that is free is taken.
    free = filter(_is_free, itertools.count())
    with _limited_to(next(itertools.islice(free, count, None))):
        yield


def _is_free(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


@contextmanager
def _limited_to(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
