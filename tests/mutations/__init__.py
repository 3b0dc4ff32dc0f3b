"""Rules that protect data, each with the test that fails when the rule is dropped.

A test that passes says little until it has been seen to fail. Each room has a module here with a
table `MUTATIONS`: which line to break, how, and which test must then fail. `python -m
tests.mutations` breaks them one after the other in a copy of the tree; `test_mutations.py` keeps
the tables from going stale.
"""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

_OUR_OWN = {"__main__", "hunting", "page", "planted", "runner", "simulator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One rule, and what dropping it looks like."""

    name: str
    """The rule, as a sentence."""
    file: str
    """From the root of the repository."""
    old: str
    """Occurs exactly once in the file."""
    new: str
    killed_by: str
    """The pytest node that must fail."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where modules are, and, by the same path below `tests/`, their tests."""

    path: str

    def rule(self, name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
        """A mutation of one of the modules, killed by one of the tests."""
        return Mutation(
            name=name,
            file=f"{self.path}/{file}",
            old=old,
            new=new,
            killed_by=f"tests/{self.path}/{killed_by}",
        )


def all_mutations() -> list[Mutation]:
    """Every room's, in the order of the modules' names."""
    names = sorted(module.name for module in iter_modules(__path__))
    rooms = [name for name in names if name not in _OUR_OWN and not name.startswith("test_")]
    tables = [import_module(f"{__name__}.{name}") for name in rooms]
    return [mutation for table in tables for mutation in table.MUTATIONS]
