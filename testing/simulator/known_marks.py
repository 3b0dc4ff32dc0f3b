"""All coverage marks there are, so that those that no run has reached can be told."""

import ast
from functools import cache
from pathlib import Path

from tidemark import partitions


@cache
def known_marks() -> frozenset[str]:
    """The names in every `mark("…")` of the partitions' code, read from its source."""
    found = set()
    for root in partitions.__path__:
        for path in sorted(Path(root).rglob("*.py")):
            found |= {name for node in ast.walk(ast.parse(path.read_text())) for name in _of(node)}
    return frozenset(found)


def _of(node: ast.AST) -> list[str]:
    match node:
        case ast.Call(func=ast.Name(id="mark"), args=[ast.Constant(value=str(name))]):
            return [name]
        case _:
            return []
