"""Python source that is written by a program: lines, indentation, names and constants."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import NoneType
from typing import Any


class Source:
    """The source of one function, as it grows."""

    def __init__(self, name: str, *parameters: str) -> None:
        self.name = name
        self.parameters = list(parameters)
        self.constants: dict[str, object] = {}
        self._names = count(1)
        self._depth = 1
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        opening = f"def {self.name}({', '.join(self.parameters)}):"
        return "\n".join([opening, *self._lines, ""])

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """What is written inside is the body of `opening`."""
        self.line(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A variable that nothing else uses."""
        return f"{stem}{next(self._names)}"

    def constant(self, stem: str, value: object) -> str:
        """A name by which the function knows `value`; what can be written is written."""
        if type(value) in (NoneType, bool, int, str, bytes) or value == ():
            return repr(value)
        for name, known in self.constants.items():
            if known is value:
                return name
        name = self.fresh(stem)
        self.constants[name] = value
        return name

    def function(self) -> Any:  # Any: whatever the source says it is
        namespace = dict(self.constants)
        exec(compile(self.text, f"<{self.name}>", "exec"), namespace)
        return namespace[self.name]
