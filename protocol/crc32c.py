"""CRC-32C, as record batches, the journal and snapshots have it.

It is the function of the package `crc32c`, taken from its extension module: the package itself
reads its own version at import, for which it brings a parser of e-mails and one of command lines,
and that was a twentieth of a broker's start.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final


def _function() -> Callable[..., int]:
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec(
        "crc32c._crc32c", package.submodule_search_locations
    )
    if extension is None or extension.loader is None:  # another release has it elsewhere
        import crc32c

        return crc32c.crc32c
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c: Final = _function()
"""`crc32c(data, value=0)`: of `data`, going on from `value`."""
