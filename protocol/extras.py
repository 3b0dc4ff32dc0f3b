"""What is said where a library is missing that comes with an extra of the package."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(extra: str, *libraries: str) -> Iterator[None]:
    """Around imports of one of these: whoever lacks it is told how to get it.

    Raises `ModuleNotFoundError`, as the import does. Another module that is missing is as before.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in libraries:
            raise
        raise ModuleNotFoundError(
            f"No module named {library!r}, which comes with Tidemark's extra {extra}:"
            f" pip install '.[{extra}]' in its checkout",
            name=error.name,
            path=error.path,
        ) from error
