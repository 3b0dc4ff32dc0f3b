"""construct without pdb, and pdb for who asks for it."""

import subprocess
import sys

import pytest

OURS = "from tidemark.protocol.construct_library import Construct"
PDB = "print('pdb' in sys.modules, 'bdb' in sys.modules)"


def python(*lines: str) -> list[str]:
    command = [sys.executable, "-c", "\n".join(["import sys", *lines])]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("before", [[], ["import pdb"]])
def test_pdb_is_there_for_who_asks_for_it_and_for_construct(before: list[str]) -> None:
    asked = ["import construct, pdb", "print(construct.debug.pdb.post_mortem is pdb.post_mortem)"]
    is_there, is_same = python(*before, OURS, PDB, *asked)
    assert is_there == ("True True" if before else "False False")
    assert is_same == "True"


def test_construct_imports_pdb_when_it_needs_it() -> None:
    assert python(OURS, "import construct", "construct.debug.pdb.Pdb", PDB) == ["True True"]
