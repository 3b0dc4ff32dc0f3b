"""What is used of construct, imported without pdb, which is for its `Debugger` alone.

To import pdb takes a fifth of that time, and more from Python 3.14 on, for there it brings asyncio:
some 13 MB.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module that is imported when something in it is asked for."""

    # Any: whatever it has.
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if "pdb" in sys.modules:
    import construct
else:
    sys.modules["pdb"] = _Later("pdb")
    try:
        import construct
    finally:
        del sys.modules["pdb"]  # all others get the real one

CodeGen = construct.CodeGen
Construct = construct.Construct
ConstructError = construct.ConstructError
Flag = construct.Flag
FormatField = construct.FormatField
