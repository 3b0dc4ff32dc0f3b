"""Imports that are done late, when there may be no descriptor left to read a module with."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def repeatable_imports() -> Iterator[None]:
    """What this block imports can be imported again where it raised `OSError`.

    Two things are in the way of that otherwise. A compiled module that cannot be opened for want of
    descriptors is an `ImportError`: it is an `OSError` from here. And a package whose import fails
    is forgotten, but not those of its modules that were imported by then; made anew, it would not
    have them as its attributes, as asyncio for one relies on.
    """
    before = frozenset(sys.modules)
    try:
        yield
    except (OSError, ImportError) as error:
        _forget_parts(before)
        if isinstance(error, OSError) or not _is_for_want_of_descriptors(error):
            raise
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), error.name) from error


def _is_for_want_of_descriptors(error: BaseException | None) -> bool:
    """Whether it says so, or what it was raised for: multiprocessing for one says something else
    where its compiled part cannot be opened."""
    while error is not None and os.strerror(errno.EMFILE) not in str(error):
        error = error.__cause__ or error.__context__
    return error is not None


def _forget_parts(before: frozenset[str]) -> None:
    """Those of packages that are not there. What other threads import meanwhile has its package."""
    for name in sorted(sys.modules.keys() - before):  # a package before what is in it
        package = name.rpartition(".")[0]
        if package and package not in sys.modules:
            sys.modules.pop(name, None)
