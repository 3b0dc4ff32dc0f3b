"""The tables of mutations say what is so."""

import ast
import builtins
from collections.abc import Iterator

import pytest

from tests.mutations import Mutation, all_mutations
from tests.mutations.planted import AIMS, PLANTED
from tests.mutations.runner import ROOT, mutated


def _name(mutation: Mutation) -> str:
    return mutation.name.replace(" ", "-")


every_mutation = pytest.mark.parametrize("mutation", all_mutations(), ids=_name)


@every_mutation
def test_a_mutation_changes_one_place_and_leaves_python(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    assert mutated(text, mutation) != text
    # Else it is the missing name that is noticed, and not that the rule is broken.
    whole, broken = ast.parse(text), ast.parse(mutated(text, mutation))
    assert _names_used(broken) <= _names_used(whole) | {*_names_bound(broken), *dir(builtins)}


@every_mutation
def test_the_test_that_notices_exists(mutation: Mutation) -> None:
    file, *names = mutation.killed_by.split("::")
    known = set(_names_in(ast.parse((ROOT / file).read_text())))
    assert {name.partition("[")[0] for name in names[:1]} <= known


def _names_used(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _names_bound(tree: ast.Module) -> Iterator[str]:
    """All that occur as targets, arguments, imports, functions or classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name


def _names_in(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def test_a_stale_table_is_noticed() -> None:
    mutation = Mutation(name="rule", file="a.py", old="x", new="y", killed_by="t.py::test")
    with pytest.raises(ValueError, match="occurs 2 times"):
        mutated("x x", mutation)


def test_what_is_planted_in_the_simulator_is_a_mutation() -> None:
    names = {mutation.name for mutation in all_mutations()}
    planted = {name for area in PLANTED.values() for name in area}
    assert planted <= names
    assert AIMS.keys() <= planted
