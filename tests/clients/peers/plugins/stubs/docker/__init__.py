"""Stands for the package that starts containers, which is imported and not used."""

from types import SimpleNamespace
from typing import Final


class Container:
    """A name in an annotation."""


models: Final = SimpleNamespace(containers=SimpleNamespace(Container=Container))
